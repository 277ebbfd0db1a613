#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Activity;
using record::Share;
using testing::Advises;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using testing::FindsCause;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTracker[] = "/usr/lib/python3/site-packages/wandb/torch_watch.py";

// Of 100 samples, so many saw this activity in the backward pass; the others saw the model.
ARun Seen(Activity activity, int64_t samples, const char* file = "/home/u/train.py") {
  ARun run = ATraining();
  run.rank().device = "cpu";
  run.rank().hot_lines = {
      {Share::kBackward, "/home/u/train.py", 53, "main", "loss.backward()", 100 - samples},
      {Share::kBackward, file, 30, "histogram", "flat.histc(64)", samples, record::HostOther::kUnnamed,
       activity},
  };
  return run;
}

TEST(InstrumentationTest, IsRaisedByHooksWithTheirLineAndShare) {
  const Diagnosis diagnosis = Diagnose(Seen(Activity::kHook, 40));
  ASSERT_THAT(diagnosis, FindsCause("instrumentation", "hooks"));
  EXPECT_THAT(diagnosis, Not(Finds("healthy")));
  const Finding& finding = diagnosis.findings.front();
  EXPECT_EQ(finding.id, "instrumentation");
  EXPECT_THAT(finding.title, HasSubstr("take 40 % of the time, most of all at train.py:30"));
  EXPECT_THAT(finding,
              Advises("if they only report, doing it every tenth step would make the run about 1.56x"));
  EXPECT_EQ(finding.method, "") << "a hook may be part of the training";
}

TEST(InstrumentationTest, HooksOfATrackerOnlyWatch) {
  const Diagnosis diagnosis = Diagnose(Seen(Activity::kHook, 40, kTracker));
  const Finding& finding = *FindingIn(diagnosis, "instrumentation");
  EXPECT_THAT(finding, Advises("log_freq"));
  EXPECT_EQ(finding.where.front().file, "wandb.torch_watch");
  EXPECT_GT(finding.speedup.low, 1.1);
  EXPECT_LT(finding.speedup.high, 2.1);
}

TEST(InstrumentationTest, ASwitchForDebuggingIsNamedWithoutAPromise) {
  ARun run = ATraining();
  run.rank().device = "cuda:0";
  run.rank().facts["launch_blocking"] = "true";
  const Finding blocking = *FindingIn(Diagnose(run), "instrumentation");
  EXPECT_EQ(blocking.cause, "debug-switches");
  EXPECT_EQ(blocking.severity, Severity::kWarning);
  EXPECT_THAT(blocking.title, HasSubstr("wait for each kernel"));
  EXPECT_EQ(blocking.method, "");
  run.rank().facts["distributed_debug"] = "\"DETAIL\"";
  EXPECT_THAT(FindingIn(Diagnose(run), "instrumentation")->title, HasSubstr("each collective"));
}

TEST(InstrumentationTest, DeterministicAlgorithmsMayBeWhatIsWanted) {
  ARun run = ATraining();
  run.rank().facts["deterministic"] = "true";
  EXPECT_EQ(FindingIn(Diagnose(run), "instrumentation")->severity, Severity::kInfo);
}

TEST(InstrumentationTest, IsNotRaisedByASwitchThatChangesNothingHere) {
  ARun run = ATraining();
  run.rank().device = "cpu";
  run.rank().facts["launch_blocking"] = "true";
  run.rank().facts["distributed_debug"] = "\"INFO\"";
  EXPECT_THAT(Diagnose(run), Not(Finds("instrumentation")));
}

TEST(InstrumentationTest, IsNotRaisedByHooksThatTakeLittle) {
  EXPECT_THAT(Diagnose(Seen(Activity::kHook, 4)), Not(Finds("instrumentation")));
}

TEST(InstrumentationTest, IsNotRaisedByTheModelsOwnLines) {
  EXPECT_THAT(Diagnose(Seen(Activity::kUnknown, 40)), Not(Finds("instrumentation")));
}

TEST(InstrumentationTest, HooksThatRunInAValidationAreAPartOfThat) {
  ARun run = Seen(Activity::kHook, 40);
  run.rank().hot_lines[1].share = Share::kHostOther;
  EXPECT_THAT(Diagnose(run), Not(Finds("instrumentation")));
}

TEST(InstrumentationTest, AnomalyDetectionThatIsOnIsSaidWithItsSwitch) {
  ARun run = Seen(Activity::kAnomaly, 30);
  run.rank().facts["anomaly_detection"] = "true";
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, FindsCause("instrumentation", "anomaly-detection"));
  const Finding& finding = diagnosis.findings.front();
  EXPECT_THAT(finding.title, HasSubstr("30 % of the time"));
  EXPECT_THAT(finding, Advises("set_detect_anomaly"));
  EXPECT_NEAR(finding.speedup.low, 1.28, 0.01)
      << "the stacks that were seen, at the low end of what they take";
  EXPECT_LT(finding.speedup.high, 1 / (1 - 0.40 - 0.7 * 0.55)) << "not the whole backward pass";
}

TEST(InstrumentationTest, AnomalyDetectionThatNoSampleSawPromisesNothing) {
  ARun run = ATraining();
  run.rank().facts["anomaly_detection"] = "true";
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, FindsCause("instrumentation", "anomaly-detection"));
  EXPECT_EQ(FindingIn(diagnosis, "instrumentation")->method, "");
  run.rank().facts["anomaly_detection"] = "false";
  EXPECT_THAT(Diagnose(run), Not(Finds("instrumentation")));
}

TEST(InstrumentationTest, AProfilerThatIsNeverOffIsSaid) {
  ARun run = ATraining();
  run.rank().facts["profiler"] = "true";
  EXPECT_THAT(Diagnose(run), FindsCause("instrumentation", "profiler"));
  run.rank().facts["profiler"] = "false";  // in some steps only
  EXPECT_THAT(Diagnose(run), Not(Finds("instrumentation")));
}

}  // namespace
}  // namespace fullbore::diagnose
