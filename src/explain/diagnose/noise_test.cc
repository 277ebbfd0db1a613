#include "explain/diagnose/noise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using record::Share;
using testing::ARun;
using testing::ATrace;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using ::testing::HasSubstr;
using testing::kMs;
using testing::MadeLoader;
using ::testing::StartsWith;

// Waits 100 of its 200 ms for a loader that would be twice as fast with one more worker.
ARun Waiting() { return ATraining().InEachStep(Share::kDataWait, 100).FedBy(MadeLoader(1, 100, 200, 199)); }

// As an unsteady machine makes it: stretches of steps that take `ms` longer.
ARun Unsteady(int64_t ms, int64_t steps = 8) {
  ARun run = Waiting();
  for (const int64_t first : {20, 50, 80}) {
    for (int64_t i = first; i < first + steps; ++i) run.InStep(i, Share::kForward, ms);
  }
  return run;
}

TEST(NoiseTest, AQuietRunSaysNothing) { EXPECT_EQ(Diagnose(Waiting()).noise, ""); }

TEST(NoiseTest, ProgramsBesideItAreSaidFirst) {
  ARun run = Waiting();
  run.Reading(Metric::kCpuUtilization, 0.98).Reading(Metric::kProcessCpu, 1.0, {{"role", "trainer"}});
  record::Recording recording = run;
  recording.machine["cores"] = recording.machine["cores_logical"] = "2";
  EXPECT_THAT(Diagnose(recording).noise, StartsWith("Noisy: other programs keep 0.96 of 2 cores busy"));
}

TEST(NoiseTest, StepsThatVaryWidenThePrediction) {
  const Speedup quiet = FindingIn(Diagnose(Waiting()), "input-bound")->speedup;
  const Diagnosis noisy = Diagnose(Unsteady(200));
  EXPECT_THAT(noisy.noise, HasSubstr("the mean step is only known to ±"));
  const Speedup wide = FindingIn(noisy, "input-bound")->speedup;
  EXPECT_GT(wide.high / wide.low, 1.1 * quiet.high / quiet.low);
}

TEST(NoiseTest, AGainThatDrownsInItIsNotPredicted) {
  EXPECT_THAT(Diagnose(Unsteady(4'000, 16)).noise, HasSubstr("a gain smaller than that cannot be told"));
  const auto promised = [](double low) {
    Finding finding;
    finding.method = "replay";
    finding.speedup = {low + 0.1, low, low + 0.2};
    Noise noise;
    noise.of_mean_step = 0.2;
    Widen(finding, noise);
    return !finding.method.empty();
  };
  EXPECT_FALSE(promised(1.15));
  EXPECT_TRUE(promised(6));
}

TEST(NoiseTest, OneStepPredictsNothing) {
  ARun run = ATrace(1).InEachStep(record::Share::kCopyExposed, 40);
  run.rank().kernels = 100;
  run.rank().facts["steps_marked"] = "true";
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, Finds("copy-bound"));
  EXPECT_EQ(FindingIn(diagnosis, "copy-bound")->method, "");
  EXPECT_THAT(diagnosis.noise, ::testing::HasSubstr("one step"));
}

}  // namespace
}  // namespace fullbore::diagnose
