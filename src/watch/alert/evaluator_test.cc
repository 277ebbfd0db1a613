// Rules on runs made by hand, with a simulated clock: what fires when, and what stays silent.
#include "watch/alert/evaluator.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/clock.h"
#include "explain/diagnose/testing/made_run.h"
#include "watch/alert/rules_file.h"

namespace fullbore::watch {
namespace {

using diagnose::testing::kMs;
using diagnose::testing::MadeStep;
using record::Metric;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;

// A run whose steps begin at 1 s; `shape` makes a step from the time at which it begins, in seconds.
class Played {
 public:
  explicit Played(
      int64_t seconds, const std::function<MadeStep(double)>& shape = [](double) { return MadeStep{}; },
      int64_t last_step_s = INT64_MAX) {
    double now_s = 1;
    std::vector<MadeStep> steps;
    while (now_s < static_cast<double>(std::min(seconds, last_step_s))) {
      steps.push_back(shape(now_s));
      const MadeStep& s = steps.back();
      now_s += static_cast<double>(s.data_ms + s.forward_ms + s.backward_ms + s.optimizer_ms + s.other_ms +
                                   s.comm_ms) /
               1e3;
    }
    recording_ = diagnose::testing::MadeRun({diagnose::testing::MadeRank(
        0, static_cast<int64_t>(steps.size()), [&](int64_t i) { return steps[static_cast<size_t>(i)]; })});
    record::RankInfo& rank = recording_.stages[0].ranks[0];
    for (const record::Step& step : rank.steps) {
      const int64_t begin_ns = step.end_ns - step.wall_ns;
      if (rank.windows.empty() || step.end_ns - rank.windows.back().begin_ns > kNsPerSecond) {
        rank.windows.emplace_back();
        rank.windows.back().begin_ns = begin_ns;
        rank.windows.back().first_step = step.index;
      }
      record::StepWindow& window = rank.windows.back();
      window.end_ns = step.end_ns;
      ++window.steps;
      window.samples += step.samples;
      window.max_wall_ns = std::max(window.max_wall_ns, step.wall_ns);
      for (size_t i = 0; i < record::kShareCount; ++i) window.share_ns[i] += step.share_ns[i];
      for (size_t i = 0; i < record::kHostOtherCount; ++i) window.host_other_ns[i] += step.host_other_ns[i];
    }
    recording_.stages[0].end_ns = seconds * kNsPerSecond;
    recording_.stages[0].state = record::StageState::kEnded;
    recording_.stages[0].exit_status = 0;
  }

  Played& With(Metric metric, const std::function<double(double)>& value, const record::Labels& labels = {}) {
    record::Series series{record::KeyOf(metric, labels), {}};
    const int64_t seconds = recording_.stages[0].end_ns / kNsPerSecond;
    for (int64_t t = 1; t <= seconds; ++t)
      series.readings.push_back({t * kNsPerSecond, value(static_cast<double>(t))});
    recording_.stages[0].series.push_back(std::move(series));
    return *this;
  }
  Played& With(Metric metric, double value, const record::Labels& labels = {}) {
    return With(
        metric, [=](double) { return value; }, labels);
  }
  Played& EndedWith(int status) {
    recording_.stages[0].exit_status = status;
    return *this;
  }
  record::Stage& stage() { return recording_.stages[0]; }
  const record::Recording& recording() const { return recording_; }

 private:
  record::Recording recording_;
};

struct Said {
  Transition::To to;
  double at_s;
  std::string what;
};

// What the rule fires and resolves; pending ones left out.
std::vector<Said> Says(const Played& run, const std::string& lines) {
  const auto rules = ParseRules("[[alert]]\nname = \"a\"\n" + lines, "test");
  EXPECT_TRUE(rules.ok()) << (rules.ok() ? "" : ToString(rules.error()));
  std::vector<Said> said;
  for (const Transition& change : Replay(run.recording(), *rules)) {
    const bool resolved = change.to == Transition::To::kResolved;
    if (!resolved && change.to != Transition::To::kFiring) continue;
    said.push_back({change.to,
                    static_cast<double>(resolved ? *change.alert.resolved_ns : change.alert.fired_ns) / 1e9,
                    resolved ? change.alert.end : change.alert.what});
  }
  return said;
}

MATCHER_P2(FiresWithin, from_s, to_s, fmt::format("fires between {} and {} s", from_s, to_s)) {
  *result_listener << "which is at " << arg.at_s << " s: " << arg.what;
  return arg.to == Transition::To::kFiring && arg.at_s >= from_s && arg.at_s <= to_s;
}
MATCHER_P2(ResolvesWithin, from_s, to_s, fmt::format("resolves between {} and {} s", from_s, to_s)) {
  *result_listener << "which is at " << arg.at_s << " s: " << arg.what;
  return arg.to == Transition::To::kResolved && arg.at_s >= from_s && arg.at_s <= to_s;
}

MadeStep WaitingBetween(double t, double from, double to) {
  MadeStep step;
  step.data_ms = t >= from && t < to ? 80 : 1;
  return step;
}

TEST(EvaluatorTest, AFindingFiresOnceInItsTimeAndResolvesOnce) {
  const Played run(400, [](double t) { return WaitingBetween(t, 120, 250); });
  const auto said = Says(run, "finding = \"input-bound\"\nabove = 0.25\nfor = \"30s\"");
  ASSERT_THAT(said, ElementsAre(FiresWithin(150, 190), ResolvesWithin(250, 330)));
  EXPECT_THAT(said[0].what, HasSubstr("data"));
}

TEST(EvaluatorTest, AShareThatPassesQuicklyIsNoAlert) {
  const Played run(400, [](double t) { return WaitingBetween(t, 120, 130); });
  EXPECT_THAT(Says(run, "finding = \"input-bound\"\nabove = 0.25\nfor = \"60s\""), IsEmpty());
}

TEST(EvaluatorTest, ASeriesFiresByItsWorstDevice) {
  Played run(300);
  run.With(Metric::kGpuUtilization, 0.9, {{"gpu", "0"}})
      .With(Metric::kGpuUtilization, [](double t) { return t > 100 && t < 200 ? 0.1 : 0.9; }, {{"gpu", "1"}});
  const auto said = Says(run, "series = \"gpu_utilization\"\nbelow = 0.5\nfor = \"20s\"");
  ASSERT_THAT(said, ElementsAre(FiresWithin(120, 150), ResolvesWithin(200, 250)));
  EXPECT_THAT(said[0].what, HasSubstr("gpu_utilization{gpu=1}"));
  EXPECT_THAT(Says(run, "series = \"gpu_utilization{gpu=0}\"\nbelow = 0.5\nfor = \"20s\""), IsEmpty());
}

TEST(EvaluatorTest, ADeviceOfSomebodyElseIsNoneOfOurs) {
  Played run(100);
  run.With(Metric::kGpuUtilization, 0.9, {{"gpu", "0"}})
      .With(Metric::kGpuUtilization, 0.0, {{"gpu", "1"}})
      .With(Metric::kGpuProcessMemory, 1e9, {{"gpu", "0"}, {"owner", "command"}})
      .With(Metric::kGpuProcessMemory, 1e9, {{"gpu", "1"}, {"owner", "other"}});
  EXPECT_THAT(Says(run, "series = \"gpu_utilization\"\nbelow = 0.5\nfor = \"10s\""), IsEmpty());
  EXPECT_THAT(Says(run, "device = \"idle\"\nfor = \"10s\""), IsEmpty());
}

TEST(EvaluatorTest, ThroughputFiresWhenItDropsOutsideTheNoise) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 4);
  const Played run(900, [&](double t) {
    MadeStep step;
    step.forward_ms = 40 + static_cast<int64_t>(std::abs(noise(random))) + (t > 500 && t < 700 ? 40 : 0);
    return step;
  });
  const auto said = Says(run, "throughput = \"drop\"\nabove = 0.15\nfor = \"30s\"");
  ASSERT_THAT(said, ElementsAre(FiresWithin(530, 580), ResolvesWithin(700, 780)));
  EXPECT_THAT(said[0].what, HasSubstr("less than the usual"));
}

// However long it lasts, what is slow since the drop does not become what is usual.
TEST(EvaluatorTest, ThroughputThatStaysLowFiresUntilTheEndOfTheRun) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> noise(0, 0.15);
  const Played run(2400, [&](double t) {
    MadeStep step;
    step.forward_ms = std::llround(40 * noise(random) * (t > 500 ? 1.5 : 1));
    return step;
  });
  const auto said = Says(run, "throughput = \"drop\"\nabove = 0.15\nfor = \"5m\"");
  ASSERT_THAT(said, ElementsAre(FiresWithin(800, 900), ResolvesWithin(2399, 2401)));
  EXPECT_THAT(said[1].what, HasSubstr("ended"));
}

TEST(EvaluatorTest, ANoisyHealthyRunOfTenMinutesFiresNothing) {
  for (const unsigned seed : {1u, 2u, 3u}) {
    std::mt19937 random(seed);
    std::lognormal_distribution<double> tail(0, 0.6);
    Played run(600, [&](double t) {
      MadeStep step;
      step.forward_ms = 30 + static_cast<int64_t>(10 * tail(random));
      step.data_ms = static_cast<int64_t>(2 * tail(random));
      if (std::fmod(t, 97) < 0.15) step.other_ms = 4000;  // a checkpoint
      return step;
    });
    std::normal_distribution<double> wobble(0, 1);
    run.With(Metric::kMemoryTotal, 64e9)
        .With(Metric::kMemoryUsed,
              [&](double t) { return 20e9 + 2e9 * (1 - std::exp(-t / 60)) + 3e8 * wobble(random); })
        .With(Metric::kDiskSpaceTotal, 1e12, {{"mount", "/"}})
        .With(Metric::kDiskSpaceUsed,
              [&](double t) { return 5e11 + 1e7 * t + 1e8 * std::abs(wobble(random)); }, {{"mount", "/"}})
        .With(Metric::kProcessCpu, 1.5, {{"role", "trainer"}})
        .With(Metric::kGpuUtilization,
              [&](double) { return std::clamp(0.7 + 0.25 * wobble(random), 0.0, 1.0); }, {{"gpu", "0"}})
        .With(Metric::kGpuProcessMemory, 1e10, {{"gpu", "0"}, {"owner", "command"}})
        .With(Metric::kGpuThrottleThermal, 0.0, {{"gpu", "0"}});
    // Sooner than anybody would set them, to give flapping its chance.
    for (const char* lines :
         {"finding = \"input-bound\"\nabove = 0.25\nfor = \"10s\"", "throughput = \"drop\"\nfor = \"20s\"",
          "steps = \"none\"\nfor = \"10s\"", "device = \"idle\"\nfor = \"10s\"", "device = \"lost\"",
          "device = \"throttled\"\nfor = \"10s\"", "memory = \"ends\"\nfor = \"10s\"",
          "disk = \"full\"\nfor = \"10s\"", "run = \"failed\"",
          "series = \"gpu_utilization\"\nbelow = 0.3\nfor = \"10s\""}) {
      const auto said = Says(run, lines);
      EXPECT_THAT(said, IsEmpty()) << lines << ": " << (said.empty() ? "" : said[0].what) << " seed " << seed;
    }
    const auto defaults = ParseRules(kDefaultRules, "defaults");
    EXPECT_THAT(Replay(run.recording(), *defaults), IsEmpty());
  }
}

TEST(EvaluatorTest, AHangFiresAndOverWhenStepsGoOn) {
  Played run(300, [](double t) {
    MadeStep step;
    if (t > 100 && t < 100.15) step.other_ms = 80'000;  // nothing for so long, then it goes on
    return step;
  });
  run.With(Metric::kProcessCpu, [](double t) { return t > 100 && t < 181 ? 0.01 : 1.0; },
           {{"role", "trainer"}});
  const auto said = Says(run, "steps = \"none\"\nfor = \"20s\"");
  ASSERT_THAT(said, ElementsAre(FiresWithin(120, 126), ResolvesWithin(180, 205)));
  EXPECT_THAT(said[0].what, AllOf(HasSubstr("no step for"), HasSubstr("nothing computes")));
}

TEST(EvaluatorTest, ALongValidationIsNoHang) {
  Played run(300, [](double t) {
    MadeStep step;
    if (t > 100 && t < 100.15) step.other_ms = 80'000;
    return step;
  });
  run.With(Metric::kProcessCpu, 1.5, {{"role", "trainer"}});
  EXPECT_THAT(Says(run, "steps = \"none\"\nfor = \"20s\""), IsEmpty());
}

TEST(EvaluatorTest, APauseAsLongAsOneBeforeIsUsual) {
  Played run(400, [](double t) {
    MadeStep step;
    if (std::fmod(t, 100) < 0.1) step.other_ms = 40'000;
    return step;
  });
  run.With(Metric::kProcessCpu, 0.0, {{"role", "trainer"}});
  EXPECT_THAT(Says(run, "steps = \"none\"\nfor = \"15s\""),
              ElementsAre(FiresWithin(115, 120), ResolvesWithin(140, 160)));
}

TEST(EvaluatorTest, AHeldDeviceThatRunsNothingFires) {
  Played run(200);
  run.With(Metric::kGpuUtilization, [](double t) { return t < 50 ? 0.9 : 0.0; }, {{"gpu", "0"}})
      .With(Metric::kGpuProcessMemory, 1e9, {{"gpu", "0"}, {"owner", "command"}});
  EXPECT_THAT(Says(run, "device = \"idle\"\nfor = \"30s\""),
              ElementsAre(FiresWithin(105, 120), ResolvesWithin(200, 200)));
}

TEST(EvaluatorTest, ALostDeviceFiresAndAnErrorOfTheProgramDoesNot) {
  Played lost(100);
  lost.stage().messages.push_back({60 * kNsPerSecond, record::Severity::kError, "nvml",
                                   "GPU 3 (H100) reported Xid 79: the GPU has fallen off the bus"});
  EXPECT_THAT(Says(lost, "device = \"lost\""), ElementsAre(FiresWithin(60, 63), ResolvesWithin(100, 100)));
  Played bug(100);
  bug.stage().messages.push_back(
      {60 * kNsPerSecond, record::Severity::kError, "nvml", "GPU 3 (H100) reported Xid 13: a kernel failed"});
  EXPECT_THAT(Says(bug, "device = \"lost\""), IsEmpty());
}

TEST(EvaluatorTest, AThrottledDeviceFires) {
  Played run(200);
  run.With(Metric::kGpuThrottleThermal, [](double t) { return t > 60 && t < 120 ? 0.8 : 0.0; },
           {{"gpu", "0"}});
  EXPECT_THAT(Says(run, "device = \"throttled\"\nabove = 0.2\nfor = \"10s\""),
              ElementsAre(FiresWithin(70, 85), ResolvesWithin(120, 145)));
}

TEST(EvaluatorTest, MemoryThatGrowsToItsEndFires) {
  Played run(400);
  run.With(Metric::kMemoryTotal, 64e9).With(Metric::kMemoryUsed, [](double t) { return 20e9 + 5e7 * t; });
  const auto said = Says(run, "memory = \"ends\"\nwithin = \"30m\"\nfor = \"10s\"");
  ASSERT_THAT(said, ElementsAre(FiresWithin(90, 130), ResolvesWithin(400, 400)));
  EXPECT_THAT(said[0].what, HasSubstr("left, enough for"));
  EXPECT_THAT(Says(run, "memory = \"ends\"\nwithin = \"5m\"\nfor = \"10s\""), IsEmpty())
      << "it lasts for longer";
}

TEST(EvaluatorTest, PageCacheIsNoMemoryTaken) {
  Played run(300);
  run.With(Metric::kCgroupMemoryLimit, 16e9)
      .With(Metric::kCgroupMemoryUsed, [](double t) { return std::min(16e9, 4e9 + 1e8 * t); })
      .With(Metric::kCgroupMemoryCache, [](double t) { return std::min(12e9, 1e8 * t); });
  EXPECT_THAT(Says(run, "memory = \"ends\"\nfor = \"10s\""), IsEmpty());
}

TEST(EvaluatorTest, ADiskFiresByItsRateOrWhenItIsNearlyFull) {
  Played filling(300);
  filling.With(Metric::kDiskSpaceTotal, 1e12, {{"mount", "/data"}})
      .With(Metric::kDiskSpaceUsed, [](double t) { return 7e11 + 4e8 * t; }, {{"mount", "/data"}});
  const auto said = Says(filling, "disk = \"full\"\nfor = \"10s\"");
  ASSERT_THAT(said, ElementsAre(FiresWithin(90, 130), ResolvesWithin(300, 300)));
  EXPECT_THAT(said[0].what, HasSubstr("the disk at /data"));
  Played full(200);
  full.With(Metric::kDiskSpaceTotal, 1e12, {{"mount", "/"}})
      .With(Metric::kDiskSpaceUsed, [](double t) { return t > 50 && t < 100 ? 9.9e11 : 5e11; },
            {{"mount", "/"}});
  EXPECT_THAT(Says(full, "disk = \"full\"\nfor = \"10s\""),
              ElementsAre(FiresWithin(60, 66), ResolvesWithin(100, 118)));
}

TEST(EvaluatorTest, ARunThatEndedBadlyFiresAtItsEnd) {
  Played failed(60), interrupted(60), well(60), killed(60);
  EXPECT_THAT(Says(failed.EndedWith(1), "run = \"failed\""), ElementsAre(FiresWithin(60, 60)));
  EXPECT_THAT(Says(interrupted.EndedWith(130), "run = \"failed\""), IsEmpty()) << "Ctrl-C is somebody's wish";
  EXPECT_THAT(Says(well, "run = \"failed\""), IsEmpty());
  killed.EndedWith(137).stage().out_of_memory = true;
  EXPECT_THAT(Says(killed, "run = \"failed\"")[0].what, HasSubstr("lack of memory"));
}

TEST(EvaluatorTest, ARunWhoseRecorderIsGoneWasCutOff) {
  Played run(60);
  run.stage().state = record::StageState::kRunning;
  run.stage().exit_status.reset();
  Evaluator evaluator(*ParseRules("[[alert]]\nname = \"a\"\nrun = \"failed\"", "test"));
  EXPECT_THAT(evaluator.Look(run.recording(), 60 * kNsPerSecond), IsEmpty());
  const auto changes = evaluator.Look(run.recording(), 100 * kNsPerSecond, /*cut_off=*/true);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_THAT(changes[0].alert.what, HasSubstr("cut off"));
}

// One who starts late, with only the last minute of a run in hand each time, knows what the run was like before.
TEST(EvaluatorTest, WhatIsRememberedStandsInForWhatWasNotWatched) {
  const Played run(900, [](double t) {
    MadeStep step;
    step.forward_ms = t > 600 ? 100 : 40;
    return step;
  });
  const RuleSet rules = *ParseRules("[[alert]]\nname = \"a\"\nthroughput = \"drop\"\nfor = \"20s\"", "test");
  record::Recording before = run.recording();
  before.stages[0].end_ns = 590 * kNsPerSecond;
  Evaluator knows(rules), does_not(rules);
  knows.Remember(before);
  size_t fired = 0, fired_without = 0;
  for (int64_t t = 590; t < 680; t += 2) {
    record::Recording minute = run.recording();
    minute.stages[0].end_ns = t * kNsPerSecond;
    minute.stages[0].state = record::StageState::kRunning;
    std::erase_if(minute.stages[0].ranks[0].windows,
                  [&](const auto& w) { return w.end_ns < (t - 60) * kNsPerSecond; });
    for (const auto& change : knows.Look(minute, t * kNsPerSecond))
      fired += change.to == Transition::To::kFiring;
    for (const auto& change : does_not.Look(minute, t * kNsPerSecond))
      fired_without += change.to == Transition::To::kFiring;
  }
  EXPECT_EQ(fired, 1u);
  EXPECT_EQ(fired_without, 0u);
}

TEST(EvaluatorTest, ANewStageEndsTheAlertsOfTheOneBefore) {
  Played first(100, [](double t) { return WaitingBetween(t, 0, 100); });
  record::Recording both = first.recording();
  both.stages.push_back(Played(60).stage());
  both.stages[1].id = 2;
  for (auto& step : both.stages[1].ranks[0].steps) step.end_ns += 200 * kNsPerSecond;
  for (auto& window : both.stages[1].ranks[0].windows) window.end_ns += 200 * kNsPerSecond;
  both.stages[1].begin_ns = 200 * kNsPerSecond;
  both.stages[1].end_ns = 260 * kNsPerSecond;
  const auto changes = Replay(
      both,
      *ParseRules("[[alert]]\nname = \"a\"\nfinding = \"input-bound\"\nabove = 0.2\nfor = \"20s\"", "test"));
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[2].to, Transition::To::kResolved);
  EXPECT_EQ(changes[2].alert.stage, 1);
}

}  // namespace
}  // namespace fullbore::watch
