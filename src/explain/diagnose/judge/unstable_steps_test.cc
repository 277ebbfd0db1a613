#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

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
using testing::kMs;
using testing::MadeLoader;
using ::testing::Not;

constexpr int64_t kSlowSteps[] = {17, 40, 63, 91};  // at no regular distance

// Four of a hundred steps take seven times as long, and spend it in `share`.
ARun WithSpikesIn(Share share) {
  ARun run = ATraining();
  for (const int64_t index : kSlowSteps) run.InStep(index, share, 600);
  return run;
}

// The same, each step with a batch of so many elements; `slow` those of the slow ones.
ARun WithSizes(int64_t usual, int64_t slow) {
  ARun run = WithSpikesIn(Share::kForward);
  for (record::Step& step : run.rank().steps) step.elements = step.wall_ns > 200 * kMs ? slow : usual;
  return run;
}

Finding UnstableSteps(const ARun& run) { return *FindingIn(Diagnose(run), "unstable-steps"); }

TEST(UnstableStepsTest, IsRaisedByStepsThatTakeSeveralTimesTheMedian) {
  const Diagnosis diagnosis = Diagnose(WithSpikesIn(Share::kForward));
  ASSERT_THAT(diagnosis, Finds("unstable-steps"));
  EXPECT_THAT(FindingIn(diagnosis, "unstable-steps")->title, HasSubstr("in forward"));
  EXPECT_EQ(FindingIn(diagnosis, "unstable-steps")->method, "")
      << "how much less they would take is not known";
}

TEST(UnstableStepsTest, SaysThatTheCauseIsNotKnownAndNothingOfSizes) {
  const Finding finding = UnstableSteps(WithSpikesIn(Share::kForward));
  EXPECT_EQ(finding.cause, "");
  EXPECT_THAT(finding.title, HasSubstr("why is not known"));
  EXPECT_THAT(finding, Not(Advises("bucket")));
}

TEST(UnstableStepsTest, WithoutACauseIsNeverTheFirst) {
  const Diagnosis diagnosis = Diagnose(WithSpikesIn(Share::kForward));
  ASSERT_THAT(diagnosis, Finds("unstable-steps"));
  EXPECT_EQ(diagnosis.findings.front().id, "healthy");
  EXPECT_THAT(diagnosis.findings.front().title, HasSubstr("Nothing whose cause is known"));
}

TEST(UnstableStepsTest, OfLargerBatchesAreCuredByBuckets) {
  const Diagnosis diagnosis = Diagnose(WithSizes(32 * 128, 32 * 900));
  ASSERT_EQ(diagnosis.findings.front().id, "unstable-steps");
  EXPECT_EQ(diagnosis.findings.front().cause, "shapes");
  EXPECT_THAT(diagnosis.findings.front(), Advises("bucket samples by length"));
}

TEST(UnstableStepsTest, AreNotOfSizesWhereBatchesAreAllAlike) {
  EXPECT_EQ(UnstableSteps(WithSizes(32 * 128, 32 * 128)).cause, "");
}

TEST(UnstableStepsTest, AreNotOfSizesWhereTheSlowOnesTakeMoreBatchesOfTheSameSize) {
  ARun run = WithSizes(32 * 128, 17 * 32 * 128);
  for (record::Step& step : run.rank().steps) step.batches = step.wall_ns > 200 * kMs ? 17 : 1;
  EXPECT_EQ(UnstableSteps(run).cause, "");
}

TEST(UnstableStepsTest, OfPassesWithoutGradientsAnotherFindingTells) {
  ARun run = ATraining();
  for (const int64_t index : kSlowSteps) run.InStep(index, Share::kHostOther, 600);
  for (record::Step& step : run.rank().steps) {
    step.host_other_ns = {};
    step.host_other_ns[static_cast<size_t>(record::HostOther::kWithoutGradients)] =
        step.share_ns[Index(Share::kHostOther)];
  }
  const Diagnosis diagnosis = Diagnose(run);
  EXPECT_THAT(diagnosis, FindsCause("host-other", "passes-without-gradients"));
  EXPECT_THAT(diagnosis, Not(Finds("unstable-steps")));
}

// In four of a hundred steps 600 ms go where the sampler saw programs that were started.
ARun WithProgramsStartedIn(Share share) {
  ARun run = ATraining();
  for (const int64_t index : kSlowSteps) run.InStep(index, share, 600);
  record::HotLine line{share,
                       "/home/u/train.py",
                       70,
                       "main",
                       "",
                       200,
                       record::HostOther::kUnnamed,
                       record::Activity::kSubprocess,
                       false,
                       ""};
  line.slow_samples = 200;
  run.rank().hot_lines = {line};
  return run;
}

TEST(UnstableStepsTest, OfWhatTheLoopDoesBesideTheTrainingAnotherFindingTells) {
  const Diagnosis diagnosis = Diagnose(WithProgramsStartedIn(Share::kHostOther));
  EXPECT_THAT(diagnosis, FindsCause("host-other", "subprocess"));
  EXPECT_THAT(diagnosis, Not(Finds("unstable-steps")));
  EXPECT_THAT(UnstableSteps(WithProgramsStartedIn(Share::kForward)).title,
              HasSubstr("the passes call what is hooked into them"));
}

TEST(UnstableStepsTest, AreNotOfSizesThatDifferButThatStepsDoNotFollow) {
  ARun run = WithSpikesIn(Share::kForward);
  for (record::Step& step : run.rank().steps) step.elements = 32 * (100 + step.index % 7 * 100);
  EXPECT_EQ(UnstableSteps(run).cause, "");
}

TEST(UnstableStepsTest, AreNotOfSizesWhereItIsTheLoaderThatTakesLonger) {
  ARun run = WithSpikesIn(Share::kDataWait);
  for (record::Step& step : run.rank().steps) step.elements = step.wall_ns > 200 * kMs ? 9'000 : 1'000;
  EXPECT_NE(UnstableSteps(run).cause, "shapes");
}

TEST(UnstableStepsTest, ThatComeAtEqualDistancesAreSaidSo) {
  ARun run = ATraining();
  for (int64_t i = 9; i < 100; i += 10) run.InStep(i, Share::kBackward, 300);
  const Finding finding = UnstableSteps(run);
  EXPECT_EQ(finding.cause, "periodic");
  EXPECT_THAT(finding.title, HasSubstr("each comes 10 steps after the one before"));
}

// Every tenth step takes 400 ms instead of 100. Of 250 samples 50 are of the steps' own line, as many in each step, and
// 75 of `activity`, which is seen in the slow ones only.
ARun EveryTenth(Share share, record::Activity activity) {
  ARun run = ATraining();
  for (int64_t i = 9; i < 100; i += 10) run.InStep(i, share, 300);
  record::HotLine own = {Share::kForward, "/home/u/train.py", 52, "main", "loss = model(x)", 250};
  own.slow_samples = 25;
  record::HotLine slow = {share, "/home/u/train.py",  30,      "histogram", "flat.histc(64)",
                          75,    HostOther::kUnnamed, activity};
  slow.slow_samples = 75;
  run.rank().hot_lines = {own, slow};
  return run;
}

TEST(UnstableStepsTest, ThatReportAtEqualDistancesAreTheFirstWithWhatThatTakes) {
  const Diagnosis diagnosis = Diagnose(EveryTenth(Share::kBackward, record::Activity::kHook));
  ASSERT_EQ(diagnosis.findings.front().id, "unstable-steps");
  EXPECT_THAT(diagnosis, Not(Finds("healthy")));
  EXPECT_THAT(diagnosis, Not(Finds("instrumentation"))) << "each cause is named once";
  const Finding& finding = diagnosis.findings.front();
  EXPECT_EQ(finding.cause, "periodic");
  EXPECT_NEAR(finding.share, 30.0 / 130, 1e-9) << "the mean of all steps, less that of the others";
  EXPECT_THAT(finding.title, HasSubstr("Every 10 steps one takes 400 ms, against 100 ms for the others"));
  EXPECT_EQ(finding.where.front().line, 30);
  EXPECT_THAT(finding, Advises("once in 100 leaves a tenth"));
  EXPECT_NEAR(finding.speedup.expected, 1 / (1 - 0.75 * 30 / 130), 1e-9) << "half to all of it";
  EXPECT_GT(finding.speedup.low, 1.05);
  EXPECT_LE(finding.speedup.low, 1 / (1 - 0.5 * 30 / 130)) << "half as often";
}

TEST(UnstableStepsTest, ThatMayTrainAtEqualDistancesPromiseNothing) {
  const Diagnosis diagnosis = Diagnose(EveryTenth(Share::kBackward, record::Activity::kUnknown));
  EXPECT_NE(diagnosis.findings.front().id, "unstable-steps");
  const Finding finding = *FindingIn(diagnosis, "unstable-steps");
  EXPECT_EQ(finding.method, "");
  EXPECT_EQ(finding.where.front().line, 30) << "the line that runs in the slow steps only";
  EXPECT_THAT(finding, Advises("a part of the training stays"));
}

TEST(UnstableStepsTest, AFewOthersAmongThemLeaveAPeriod) {
  ARun run = EveryTenth(Share::kBackward, record::Activity::kHook);
  for (const int64_t index : {12, 33, 35, 76}) run.InStep(index, Share::kForward, 150);
  EXPECT_EQ(UnstableSteps(run).cause, "periodic");
}

// Steps of 100 ms, of which those take 300 ms more whose place among so many is in `slow`, in a line of a hook.
ARun InGroups(int64_t of, const std::vector<int64_t>& slow) {
  ARun run = ATraining(300);
  for (int64_t i = 0; i < 300; ++i)
    if (std::ranges::find(slow, i % of) != slow.end()) run.InStep(i, Share::kBackward, 300);
  record::HotLine line = {Share::kBackward,    "/home/u/train.py",     30, "histogram", "flat.histc(64)", 75,
                          HostOther::kUnnamed, record::Activity::kHook};
  line.slow_samples = 75;
  run.rank().hot_lines = {line};
  return run;
}

TEST(UnstableStepsTest, AFewInARowWithTheirOwnDistanceHaveNoPeriod) {
  // Three of a hundred, three apart: not every third of them.
  for (const Diagnosis& diagnosis : {Diagnose(InGroups(100, {40, 43, 46})), Diagnose(InGroups(5, {1, 3}))}) {
    for (const Finding& finding : diagnosis.findings) {
      EXPECT_NE(finding.cause, "periodic") << finding.title;
      EXPECT_THAT(finding.title, Not(HasSubstr("Every ")));
    }
  }
}

TEST(UnstableStepsTest, APeriodOfAPartOfTheStepsTakesNoMoreThanThere) {
  ARun run = InGroups(1'000, {100, 105, 110, 115, 120, 125, 130, 135});  // 8 of 300 steps
  const Finding finding = UnstableSteps(run);
  ASSERT_EQ(finding.cause, "periodic");
  EXPECT_NEAR(finding.share, 8.0 / 108, 1e-9);
}

TEST(UnstableStepsTest, OfALoaderThatDeliversInTurnAreLeftToTheWaitForData) {
  record::Loader loader = MadeLoader(10, 100, 150, 149);
  const Diagnosis diagnosis =
      Diagnose(EveryTenth(Share::kDataWait, record::Activity::kUnknown).FedBy(loader));
  ASSERT_THAT(diagnosis, Finds("input-bound"));
  EXPECT_THAT(diagnosis, Not(Finds("unstable-steps")));
}

TEST(UnstableStepsTest, InWhichTheLoopLogsAreLeftToWhatItDoesBesideTraining) {
  const Diagnosis diagnosis = Diagnose(EveryTenth(Share::kHostOther, record::Activity::kLogging));
  ASSERT_THAT(diagnosis, FindsCause("host-other", "logging"));
  EXPECT_THAT(diagnosis, Not(Finds("unstable-steps")));
}

TEST(UnstableStepsTest, WhoseExtraTimeIsACheckpointSaySo) {
  ARun run = WithSpikesIn(Share::kHostOther);
  for (record::Step& step : run.rank().steps) {
    auto& parts = step.host_other_ns;
    std::swap(parts[static_cast<size_t>(HostOther::kUnnamed)],
              parts[static_cast<size_t>(HostOther::kCheckpoint)]);
  }
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, FindsCause("host-other", "checkpoint"));
  EXPECT_THAT(diagnosis, Not(Finds("unstable-steps"))) << "each cause is named once";
}

TEST(UnstableStepsTest, ThatBeginEpochsAreLeftToTheWaitForData) {
  record::Loader loader = MadeLoader(2, 100, 150, 149);
  loader.restarts = 4;
  loader.restart_wait_ns = 4 * 600 * kMs;
  const Diagnosis diagnosis = Diagnose(WithSpikesIn(Share::kDataWait).FedBy(loader));
  ASSERT_THAT(diagnosis, FindsCause("input-bound", "epoch-start"));
  EXPECT_THAT(diagnosis, Not(Finds("unstable-steps")));
}

TEST(UnstableStepsTest, BesideOtherProgramsNameThem) {
  ARun run = WithSpikesIn(Share::kForward).OnCores(2);
  run.Reading(Metric::kCpuUtilization, 1).Reading(Metric::kProcessCpu, 0.8, {{"role", "trainer"}});
  EXPECT_EQ(UnstableSteps(run).cause, "other-programs");
}

TEST(UnstableStepsTest, IsNotRaisedByOneSlowStepInAHundred) {
  EXPECT_THAT(Diagnose(ATraining().InStep(40, Share::kForward, 400)), Not(Finds("unstable-steps")));
}

TEST(UnstableStepsTest, IsNotRaisedByALoopThatWaitsForItsStepsNowAndThen) {
  EXPECT_THAT(Diagnose(WithSpikesIn(Share::kSync)), Not(Finds("unstable-steps")));
}

TEST(UnstableStepsTest, IsNotRaisedByStepsBelowTwiceTheMedian) {
  ARun run = ATraining();
  for (int64_t i = 1; i < 100; i += 10) run.InStep(i, Share::kForward, 95);
  EXPECT_THAT(Diagnose(run), Not(Finds("unstable-steps")));
}

}  // namespace
}  // namespace fullbore::diagnose
