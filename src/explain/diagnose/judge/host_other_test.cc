#include <gtest/gtest.h>

#include <tuple>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Activity;
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

// A third of the step, of which the sampler saw this.
ARun WithSamples(std::initializer_list<record::HotLine> lines) {
  ARun run = ATraining().InEachStep(Share::kHostOther, 50);
  run.rank().hot_lines = lines;
  return run;
}

record::HotLine Seen(Activity activity, int64_t samples, int line = 70, Share share = Share::kHostOther) {
  return {share, "/home/u/train.py", line, "main", "text", samples, HostOther::kUnnamed, activity, false, ""};
}

TEST(HostOtherTest, IsRaisedByCodeBesideTrainingAndNamesItsLine) {
  const Diagnosis diagnosis =
      Diagnose(WithSamples({Seen(Activity::kLogging, 90), Seen(Activity::kLogging, 10, 71)}));
  ASSERT_THAT(diagnosis, FindsCause("host-other", "logging"));
  const Finding& finding = *FindingIn(diagnosis, "host-other");
  EXPECT_NEAR(finding.share, 1.0 / 3, 1e-9);
  EXPECT_THAT(finding.title, HasSubstr("most of it at train.py:70"));
  EXPECT_THAT(finding, Advises("every N steps"));
  EXPECT_NEAR(finding.speedup.expected, 1 / (1 - 0.9 / 3), 1e-9);
}

// 25 ms of each step of 155 ms are a checkpoint; of 30 ms beside it, so many samples saw code without a name.
Diagnosis BesideCheckpoints(int64_t samples) {
  ARun run = ATraining().InEachStep(Share::kHostOther, 55);
  run.OfWhichEachStep(HostOther::kCheckpoint, 25);
  for (record::Step& step : run.rank().steps)
    step.host_other_ns[static_cast<size_t>(HostOther::kUnnamed)] = 30'000'000;
  run.rank().hot_lines = {Seen(Activity::kUnknown, samples)};
  return Diagnose(run);
}

TEST(HostOtherTest, CodeWithoutANameIsNamedFirstWhereItsSamplesTellThatItTakesMore) {
  const Diagnosis few = BesideCheckpoints(14);
  ASSERT_THAT(few, FindsCause("host-other", "checkpoint"));
  EXPECT_THAT(FindingIn(few, "host-other")->title,
              HasSubstr("it also runs other code between the steps (19 %"));
  EXPECT_THAT(BesideCheckpoints(10'000), FindsCause("host-other", "loop-code"));
}

// Every tenth step is slow: garbage is collected in it.
ARun WithCollections(std::initializer_list<record::HotLine> lines) {
  ARun run = WithSamples(lines);
  for (int64_t index = 5; index < 100; index += 10) run.InStep(index, Share::kHostOther, 300);
  for (record::Step& step : run.rank().steps) {
    if (step.index % 10 != 5) continue;
    step.host_other_ns[static_cast<size_t>(HostOther::kGarbageCollection)] = 300'000'000;
    step.host_other_ns[static_cast<size_t>(HostOther::kUnnamed)] -= 300'000'000;
  }
  return run;
}

TEST(HostOtherTest, CollectionsOfTheGarbageThatLoggingMakesGoWithIt) {
  record::HotLine logging = Seen(Activity::kLogging, 1000);
  logging.slow_samples = 200;
  const Diagnosis diagnosis = Diagnose(WithCollections({logging}));
  ASSERT_THAT(diagnosis, FindsCause("host-other", "logging"));
  const Finding& finding = *FindingIn(diagnosis, "host-other");
  EXPECT_NEAR(finding.speedup.expected, 1 / (1 - 0.9 * 80 / 180), 0.01) << "50 of 180 ms, and 30 beside them";
  EXPECT_THAT(finding.method, HasSubstr("garbage collections that its objects set off, 17 % of the step"));
}

TEST(HostOtherTest, CollectionsOfTheGarbageThatOthersMakeStay) {
  record::HotLine others = Seen(Activity::kUnknown, 10, 30, Share::kForward);
  others.slow_samples = 200;
  const Diagnosis diagnosis = Diagnose(WithCollections({Seen(Activity::kLogging, 1000), others}));
  const Finding& finding = *FindingIn(diagnosis, "host-other");
  EXPECT_NEAR(finding.speedup.expected, 1 / (1 - 0.9 * 50 / 180), 0.01);
  EXPECT_THAT(finding.method, Not(HasSubstr("garbage")));
}

// 20 s in one of a hundred steps, or the same in two.
ARun WithAProgramStartedIn(std::initializer_list<int64_t> steps) {
  ARun run = ATraining();
  for (const int64_t index : steps)
    run.InStep(index, Share::kHostOther, 20'000 / static_cast<int64_t>(steps.size()));
  run.rank().hot_lines = {Seen(Activity::kSubprocess, 200)};
  return run;
}

TEST(HostOtherTest, NothingIsPromisedOfWhatCameOnce) {
  const Diagnosis once = Diagnose(WithAProgramStartedIn({50}));
  ASSERT_THAT(once, FindsCause("host-other", "subprocess"));
  EXPECT_TRUE(FindingIn(once, "host-other")->method.empty());
  EXPECT_THAT(*FindingIn(once, "host-other"), Advises("it came once in 100 steps"));
  const Diagnosis twice = Diagnose(WithAProgramStartedIn({30, 60}));
  EXPECT_FALSE(FindingIn(twice, "host-other")->method.empty());
  EXPECT_THAT(*FindingIn(twice, "host-other"), Advises("a tenth as often"));
}

TEST(HostOtherTest, ThreadsThatAPausePutToSleepGainMore) {
  const auto gain = [](const char* threads) {
    ARun run = WithSamples({Seen(Activity::kLogging, 100)});
    run.rank().facts["torch_threads"] = threads;
    return FindingIn(Diagnose(run), "host-other")->speedup;
  };
  EXPECT_GT(gain("2").expected, gain("1").expected);
  EXPECT_GT(gain("2").high, gain("1").high);
  EXPECT_EQ(gain("2").low, gain("1").low) << "perhaps they never slept";
}

TEST(HostOtherTest, OnlyMoreThanHalfIsMost) {
  const Diagnosis diagnosis = Diagnose(WithSamples(
      {Seen(Activity::kLogging, 40), Seen(Activity::kLogging, 30, 71), Seen(Activity::kLogging, 30, 72)}));
  EXPECT_THAT(FindingIn(diagnosis, "host-other")->title, HasSubstr("40 % of it at train.py:70"));
}

TEST(HostOtherTest, ARolloutIsNamedAndNothingIsPromised) {
  const Diagnosis diagnosis =
      Diagnose(WithSamples({Seen(Activity::kEnvironment, 80), Seen(Activity::kUnknown, 20, 71)}));
  ASSERT_THAT(diagnosis, FindsCause("host-other", "rollout"));
  const Finding& finding = *FindingIn(diagnosis, "host-other");
  EXPECT_THAT(finding.title, HasSubstr("environment"));
  EXPECT_TRUE(finding.fix.empty());
  EXPECT_TRUE(finding.method.empty());
  EXPECT_EQ(finding.speedup.high, 1);
}

// A third of the step, half of it passes without gradients.
ARun WithPasses(std::initializer_list<record::HotLine> lines) {
  ARun run = WithSamples(lines);
  for (record::Step& step : run.rank().steps) {
    step.host_other_ns[static_cast<size_t>(HostOther::kWithoutGradients)] += 25'000'000;
    step.host_other_ns[static_cast<size_t>(HostOther::kUnnamed)] -= 25'000'000;
  }
  return run;
}

TEST(HostOtherTest, OfPassesWithoutGradientsItSaysWhatIsSeenAndNoMore) {
  const Diagnosis diagnosis = Diagnose(WithPasses({Seen(Activity::kUnknown, 100)}));
  ASSERT_THAT(diagnosis, FindsCause("host-other", "passes-without-gradients"));
  const Finding& finding = *FindingIn(diagnosis, "host-other");
  EXPECT_THAT(finding.title, HasSubstr("runs forward passes without gradients (17 %)"));
  EXPECT_THAT(finding.title, Not(HasSubstr("other than training")));
  EXPECT_THAT(finding.title, Not(HasSubstr("validat")));
  EXPECT_TRUE(finding.fix.empty());
  EXPECT_EQ(finding.speedup.high, 1);
}

TEST(HostOtherTest, BesideAnEnvironmentPassesWithoutGradientsAreARollout) {
  const Diagnosis diagnosis = Diagnose(WithPasses(
      {Seen(Activity::kEnvironment, 10), Seen(Activity::kQueue, 70, 71), Seen(Activity::kLogging, 20, 72)}));
  ASSERT_THAT(diagnosis, FindsCause("host-other", "rollout"));
  const Finding& finding = *FindingIn(diagnosis, "host-other");
  EXPECT_THAT(finding.title, HasSubstr("(30 %"));
  EXPECT_EQ(finding.speedup.high, 1) << "logging, 3 % of the step, is not worth a word";
}

TEST(HostOtherTest, AStrayDistributionMakesNoRollout) {
  const Diagnosis diagnosis =
      Diagnose(WithPasses({Seen(Activity::kEnvironment, 2), Seen(Activity::kUnknown, 98, 71)}));
  EXPECT_THAT(diagnosis, FindsCause("host-other", "passes-without-gradients"));
}

TEST(HostOtherTest, NothingIsPromisedForCodeThatWasNotRecognised) {
  for (const ARun& run :
       {WithSamples({}), WithSamples({Seen(Activity::kUnknown, 100)}),
        WithSamples({Seen(Activity::kQueue, 100)}), WithSamples({Seen(Activity::kLock, 100)}),
        WithSamples({Seen(Activity::kFuture, 100)})}) {
    const Diagnosis diagnosis = Diagnose(run);
    const Finding& finding = *FindingIn(diagnosis, "host-other");
    EXPECT_EQ(finding.speedup.high, 1) << finding.title;
    EXPECT_TRUE(finding.fix.empty()) << finding.fix.front();
  }
}

TEST(HostOtherTest, WhatMayComputeUnseenIsNotCalledOtherWork) {
  ARun run = WithSamples({Seen(Activity::kUnknown, 100)});
  run.rank().facts["framework"] = "\"jax\"";
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, FindsCause("host-other", "not-seen"));
  EXPECT_THAT(FindingIn(diagnosis, "host-other")->title, Not(HasSubstr("other than training")));
  run = WithSamples({Seen(Activity::kLogging, 100)});
  run.rank().facts["framework"] = "\"jax\"";
  EXPECT_THAT(Diagnose(run), FindsCause("host-other", "logging")) << "what is seen keeps its name";
}

TEST(HostOtherTest, OfOwnCodeAtOneLineItSaysWhatDoingItLessOftenWouldBringAndPromisesNothing) {
  const Diagnosis diagnosis = Diagnose(WithSamples({Seen(Activity::kPython, 100)}));
  const Finding& finding = *FindingIn(diagnosis, "host-other");
  EXPECT_THAT(finding, Advises("if what train.py:70 computes is only reported"));
  EXPECT_THAT(finding, Advises("about 1.43x")) << "nine tenths of a third";
  EXPECT_EQ(finding.speedup.high, 1);
  const Diagnosis scattered = Diagnose(WithSamples(
      {Seen(Activity::kPython, 40), Seen(Activity::kPython, 30, 71), Seen(Activity::kPython, 30, 72)}));
  EXPECT_TRUE(FindingIn(scattered, "host-other")->fix.empty());
}

TEST(HostOtherTest, EachActivityWithACureHasItsOwn) {
  for (const auto& [activity, cause, words] : {std::tuple(Activity::kPlotting, "plotting", "draw"),
                                               {Activity::kMetrics, "metrics", "epoch"},
                                               {Activity::kTokenising, "tokenising", "tokenise once"},
                                               {Activity::kFile, "files", "thread"},
                                               {Activity::kNetwork, "network", "send"},
                                               {Activity::kSubprocess, "subprocess", "Popen"},
                                               {Activity::kSleep, "sleep", "remove the sleep"}}) {
    const Diagnosis diagnosis = Diagnose(WithSamples({Seen(activity, 100)}));
    ASSERT_THAT(diagnosis, FindsCause("host-other", cause));
    EXPECT_THAT(*FindingIn(diagnosis, "host-other"), Advises(words));
    EXPECT_GT(FindingIn(diagnosis, "host-other")->speedup.low, 1);
  }
}

TEST(HostOtherTest, TheGainIsOnlyThatOfWhatTheAdviceRemoves) {
  const Diagnosis diagnosis =
      Diagnose(WithSamples({Seen(Activity::kEnvironment, 700), Seen(Activity::kLogging, 300, 90)}));
  ASSERT_THAT(diagnosis, FindsCause("host-other", "rollout"));
  const Finding& finding = *FindingIn(diagnosis, "host-other");
  EXPECT_THAT(finding.title, HasSubstr("it also logs or prints (10 %, most of it at train.py:90)"));
  EXPECT_THAT(finding, Advises("every N steps"));
  EXPECT_LT(finding.speedup.high, 1.13);
  EXPECT_EQ(finding.where.front().line, 90);
}

TEST(HostOtherTest, FewSamplesWidenTheRange) {
  const auto range = [](int64_t times) {
    const Diagnosis diagnosis =
        Diagnose(WithSamples({Seen(Activity::kLogging, 8 * times), Seen(Activity::kUnknown, 2 * times, 71)}));
    const Speedup speedup = FindingIn(diagnosis, "host-other")->speedup;
    return speedup.high - speedup.low;
  };
  EXPECT_GT(range(1), 1.5 * range(100));
}

TEST(HostOtherTest, WhatIsPreparedBesideAPolicyMayComeFromItsActions) {
  const Diagnosis diagnosis = Diagnose(WithPasses({Seen(Activity::kDataPreparation, 100)})
                                           .OnCores(8)
                                           .Reading(Metric::kProcessCpu, 1, {{"role", "trainer"}}));
  const Finding& finding = *FindingIn(diagnosis, "host-other");
  EXPECT_TRUE(finding.method.empty());
  EXPECT_TRUE(finding.fix.empty());
}

TEST(HostOtherTest, WhatAdviceIsForIsNamedWhereNoCoreIsIdle) {
  const Diagnosis diagnosis =
      Diagnose(WithSamples({Seen(Activity::kUnknown, 60), Seen(Activity::kDataPreparation, 40, 90)})
                   .OnCores(2)
                   .Reading(Metric::kProcessCpu, 1.9, {{"role", "trainer"}}));
  EXPECT_THAT(FindingIn(diagnosis, "host-other")->title, HasSubstr("; it also prepares data"));
}

TEST(HostOtherTest, DataIsPreparedElsewhereOnlyWhereACoreIsIdle) {
  const auto gain = [](double trainer_cores) {
    const Diagnosis diagnosis =
        Diagnose(WithSamples({Seen(Activity::kDataPreparation, 100)})
                     .OnCores(2)
                     .Reading(Metric::kProcessCpu, trainer_cores, {{"role", "trainer"}}));
    return FindingIn(diagnosis, "host-other")->speedup.expected;
  };
  EXPECT_GT(gain(1.0), 1.2);
  EXPECT_EQ(gain(1.9), 1);
}

TEST(HostOtherTest, WhatAnEnvironmentAnswersIsNotPreparedElsewhere) {
  const Diagnosis diagnosis =
      Diagnose(WithSamples({Seen(Activity::kEnvironment, 700), Seen(Activity::kDataPreparation, 300, 90)})
                   .OnCores(8)
                   .Reading(Metric::kProcessCpu, 1, {{"role", "trainer"}}));
  ASSERT_THAT(diagnosis, FindsCause("host-other", "rollout"));
  EXPECT_TRUE(FindingIn(diagnosis, "host-other")->fix.empty());
}

TEST(HostOtherTest, TheLibraryThatRunsTheLoopIsNamedWithItsOption) {
  ARun run = WithSamples({Seen(Activity::kLogging, 100)});
  run.rank().hot_lines.front().library = "transformers";
  EXPECT_THAT(*FindingIn(Diagnose(run), "host-other"), Advises("TrainingArguments(logging_steps=...)"));
}

TEST(HostOtherTest, IsNotRaisedBelowATwentieth) {
  EXPECT_THAT(Diagnose(ATraining().InEachStep(Share::kHostOther, 5)), Not(Finds("host-other")));
}

TEST(HostOtherTest, WhatTheLoopDoesIsNamedWhereItWasSeen) {
  for (const auto& [part, cause] :
       {std::pair(HostOther::kCheckpoint, "checkpoint"), std::pair(HostOther::kValidation, "validation"),
        std::pair(HostOther::kGarbageCollection, "garbage-collection")}) {
    EXPECT_THAT(Diagnose(ATraining().InEachStep(Share::kHostOther, 50).OfWhichEachStep(part, 45)),
                FindsCause("host-other", cause));
  }
}

TEST(HostOtherTest, WhereDeviceAndCpuIdleTheCodeIsSerial) {
  const Diagnosis diagnosis = Diagnose(ATraining()
                                           .InEachStep(Share::kHostOther, 300)
                                           .OnGpu(Metric::kGpuUtilization, 0.15)
                                           .Reading(Metric::kCpuUtilization, 0.13));
  EXPECT_THAT(*FindingIn(diagnosis, "host-other"), Advises("parallelise"));
}

}  // namespace
}  // namespace fullbore::diagnose
