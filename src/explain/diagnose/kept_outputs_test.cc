#include "explain/diagnose/kept_outputs.h"

#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::HostOther;
using record::Metric;
using record::Share;
using testing::Advises;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using testing::FindsCause;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kByTheTrainer[] =
    R"({"evaluations": 4, "passes": 16, "bytes": 131000000, "on_device": 0, "as_they_are": false,
        "shape": [8, 64, 4000], "dtype": "float32", "by": "transformers"})";
constexpr char kByTheScript[] =
    R"({"evaluations": 4, "passes": 16, "bytes": 131000000, "on_device": 0, "as_they_are": true,
        "shape": [8, 64, 4000], "dtype": "float32", "by": ""})";
constexpr char kOnTheDevice[] =
    R"({"evaluations": 1, "passes": 400, "bytes": 30000000000, "on_device": 30000000000, "as_they_are": false,
        "shape": [8, 512, 50000], "dtype": "bfloat16", "by": "transformers"})";
constexpr char kHalfGrows[] =
    R"({"count": 4, "ns": 1000, "between_ns": 600, "growing_ns": 500, "after_ns": 100})";
constexpr char kNothingGrows[] =
    R"({"count": 4, "ns": 1000, "between_ns": 600, "growing_ns": -20, "after_ns": 100})";

// A third of the time validates.
ARun Validating(const char* kept, const char* validations) {
  ARun run = ATraining().InEachStep(Share::kHostOther, 50).OfWhichEachStep(HostOther::kValidation, 50);
  if (kept) run.rank().facts["kept_outputs"] = kept;
  if (validations) run.rank().facts["validations"] = validations;
  return run;
}

TEST(KeptOutputsTest, AreTheCauseWhereKeepingThemTakesTime) {
  const Diagnosis diagnosis = Diagnose(Validating(kByTheTrainer, kHalfGrows));
  ASSERT_THAT(diagnosis, FindsCause("host-other", "kept-outputs"));
  const Finding& finding = *FindingIn(diagnosis, "host-other");
  EXPECT_THAT(
      finding.title,
      HasSubstr("it validates (33 %); 17 % goes into keeping the outputs of all 16 passes until it is over"));
  EXPECT_THAT(finding.fix.front(), HasSubstr("preprocess_logits_for_metrics"));
  EXPECT_THAT(finding, Advises("or validate a quarter as often"));
  EXPECT_NEAR(finding.speedup.expected, 1 / (1 - 0.9 / 6), 1e-9);
  EXPECT_NEAR(finding.speedup.low, 1 / (1 - 0.5 / 6), 1e-9);
  EXPECT_NEAR(finding.speedup.high, 1 / (1 - 0.7 / 3), 1e-9) << "nothing follows the passes any more";
}

TEST(KeptOutputsTest, AreMentionedWhereThatTakesNoTime) {
  for (const char* validations : {kNothingGrows, static_cast<const char*>(nullptr)}) {
    const Diagnosis diagnosis = Diagnose(Validating(kByTheScript, validations));
    ASSERT_THAT(diagnosis, FindsCause("host-other", "validation"));
    const Finding& finding = *FindingIn(diagnosis, "host-other");
    EXPECT_THAT(finding.title, HasSubstr("; it keeps the outputs of all 16 passes until it is over"));
    EXPECT_THAT(finding.fix.front(), HasSubstr("validate a quarter as often"));
    EXPECT_THAT(finding, Advises("logits.argmax(-1)"));
    EXPECT_THAT(finding, Not(Advises("preprocess_logits_for_metrics")));
    EXPECT_NEAR(finding.speedup.expected, 1 / (1 - 0.75 / 3), 1e-9) << "of validating less often, as ever";
  }
}

// A loop that puts all together at the end, and takes the best then.
TEST(KeptOutputsTest, AreMentionedBesideCodeWithoutANameThatTakesMore) {
  ARun run = Validating(kByTheScript, kNothingGrows).InEachStep(Share::kHostOther, 100);
  for (record::Step& step : run.rank().steps)
    step.host_other_ns[static_cast<size_t>(HostOther::kUnnamed)] = 100'000'000;
  run.rank().hot_lines = {{Share::kHostOther, "/home/u/train.py", 20, "main", "text", 1000,
                           HostOther::kUnnamed, record::Activity::kUnknown, false, ""}};
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, FindsCause("host-other", "loop-code"));
  const Finding& finding = *FindingIn(diagnosis, "host-other");
  EXPECT_THAT(finding.title, HasSubstr("it also validates (20 %); it keeps the outputs of all 16 passes"));
  EXPECT_THAT(finding, Advises("logits.argmax(-1)"));
}

TEST(KeptOutputsTest, AreNotSaidWhereNoneWereSeenThoughItsPassesAreFollowedByMoreAndMore) {
  for (const char* kept : {static_cast<const char*>(nullptr), "{}", R"({"bytes": 0})", R"({"bytes": "1"})"}) {
    const Diagnosis diagnosis = Diagnose(Validating(kept, kHalfGrows));
    ASSERT_THAT(diagnosis, FindsCause("host-other", "validation"));
    EXPECT_THAT(FindingIn(diagnosis, "host-other")->title, Not(HasSubstr("keep")));
  }
}

TEST(KeptOutputsTest, AreNotSaidWhereTheLoopDoesSomethingElse) {
  ARun run = ATraining().InEachStep(Share::kHostOther, 50).OfWhichEachStep(HostOther::kCheckpoint, 45);
  run.rank().facts["kept_outputs"] = kByTheTrainer;
  run.rank().facts["validations"] = kHalfGrows;
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, FindsCause("host-other", "checkpoint"));
  EXPECT_THAT(*FindingIn(diagnosis, "host-other"), Not(Advises("logits")));
}

ARun OnADevice(const char* kept, double used) {
  ARun run = ATraining().OnGpu(Metric::kGpuMemoryUsed, used).OnGpu(Metric::kGpuMemoryTotal, 80e9);
  run.rank().facts["kept_outputs"] = kept;
  return run;
}

TEST(KeptOutputsTest, AreTheFirstThingToGoWhereTheDeviceIsFullOfThem) {
  const Diagnosis diagnosis = Diagnose(OnADevice(kOnTheDevice, 78e9));
  const Finding& finding = *FindingIn(diagnosis, "memory-pressure");
  EXPECT_THAT(finding.fix.front(), HasSubstr("an evaluation keeps the outputs of all 400 passes"));
  EXPECT_THAT(finding.fix.front(), HasSubstr("preprocess_logits_for_metrics"));
  EXPECT_THAT(finding, Advises("eval_accumulation_steps"));
}

TEST(KeptOutputsTest, OnTheHostAreNotWhyADeviceIsFull) {
  const Diagnosis diagnosis = Diagnose(OnADevice(kByTheTrainer, 78e9));
  EXPECT_THAT(*FindingIn(diagnosis, "memory-pressure"), Not(Advises("logits")));
}

TEST(KeptOutputsTest, AreTheFirstThingToGoWhereTheHostIsShortOfMemory) {
  const auto of = [](double limit) {
    ARun run = ATraining()
                   .Reading(Metric::kPsiMemorySome, 0.2)
                   .Reading(Metric::kCgroupMemoryLimit, limit)
                   .Reading(Metric::kCgroupMemoryUsed, limit);
    run.rank().facts["kept_outputs"] = kByTheScript;
    return Diagnose(run);
  };
  const Diagnosis little = of(1e9), much = of(64e9);
  EXPECT_THAT(FindingIn(little, "host-memory")->fix.front(), HasSubstr("logits.argmax(-1)"));
  EXPECT_THAT(*FindingIn(much, "host-memory"), Not(Advises("logits"))) << "a five hundredth of it";
}

}  // namespace
}  // namespace fullbore::diagnose
