#include "explain/diagnose/noise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using record::Share;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
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

std::string Said(const Diagnosis& diagnosis) {
  for (const fitness::Condition& condition : diagnosis.fitness.conditions)
    if (condition.id == "noise") return condition.says;
  return "";
}

ARun& BesideAnother(ARun& run) {
  run.Reading(Metric::kCpuUtilization, 0.98).Reading(Metric::kProcessCpu, 1.0, {{"role", "trainer"}});
  return run.OnCores(2);
}

TEST(NoiseTest, AQuietRunSaysNothing) { EXPECT_EQ(Said(Diagnose(Waiting())), ""); }

TEST(NoiseTest, ProgramsBesideItAreSaidFirst) {
  ARun run = Waiting();
  EXPECT_THAT(Said(Diagnose(BesideAnother(run))),
              StartsWith("Noisy: other programs keep 0.96 of 2 cores busy"));
}

TEST(NoiseTest, OthersMayBeTheCauseOfAWaitThatHalfOfTheCoresWouldEnd) {
  ARun half = Waiting();
  EXPECT_TRUE(FindingIn(Diagnose(BesideAnother(half)), "input-bound")->doubtful);
  ARun nearly_all = ATraining().InEachStep(Share::kDataWait, 3'200).FedBy(MadeLoader(0, 100, 3'200, 3'100));
  EXPECT_FALSE(FindingIn(Diagnose(BesideAnother(nearly_all)), "input-bound")->doubtful) << "97 %";
  EXPECT_FALSE(FindingIn(Diagnose(Waiting()), "input-bound")->doubtful) << "with the machine to itself";
}

TEST(NoiseTest, StepsThatVaryWidenThePrediction) {
  const Speedup quiet = FindingIn(Diagnose(Waiting()), "input-bound")->speedup;
  const Diagnosis noisy = Diagnose(Unsteady(200));
  EXPECT_THAT(Said(noisy), HasSubstr("the mean step is only known to ±"));
  const Speedup wide = FindingIn(noisy, "input-bound")->speedup;
  EXPECT_GT(wide.high / wide.low, 1.1 * quiet.high / quiet.low);
}

TEST(NoiseTest, AGainThatDrownsInItIsNotPredicted) {
  EXPECT_THAT(Said(Diagnose(Unsteady(4'000, 16))), HasSubstr("a gain smaller than that cannot be told"));
  const auto promised = [](double low) {
    Finding finding;
    finding.method = "replay";
    finding.speedup = {low + 0.1, low, low + 0.2};
    fitness::Doubt doubt;
    doubt.of_mean_step = 0.2;
    Widen(finding, doubt);
    return !finding.method.empty();
  };
  EXPECT_FALSE(promised(1.15));
  EXPECT_TRUE(promised(6));
}

}  // namespace
}  // namespace fullbore::diagnose
