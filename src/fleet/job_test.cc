#include "fleet/job.h"

#include <gmock/gmock.h>

#include "fleet/job_json.h"
#include "fleet/job_terminal.h"

namespace fullbore::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kSecond = 1'000'000'000, kBegin = 1'700'000'000 * kSecond;

// Of two devices, from then on, in seconds after the job's begin; a fifth of it waited for data.
RunAccount ARun(int64_t begin_s, int64_t end_s, int64_t restarts = 0, int exit_status = 0) {
  RunAccount run;
  run.id = "run-" + std::to_string(begin_s);
  run.job = "4711";
  run.user = "anna";
  run.device = "cpu";
  run.devices = 2;
  run.nodes = {"gpu-1"};
  run.begin_unix_ns = kBegin + begin_s * kSecond;
  run.end_unix_ns = kBegin + end_s * kSecond;
  run.given_ns = kSecond * 2 * (end_s - begin_s);
  run.ended = true;
  run.exit_status = exit_status;
  run.use.restarts = restarts;
  run.parts = {{Kind::kWork, "", run.given_ns * 4 / 5}, {Kind::kWaste, "input-bound", run.given_ns / 5}};
  return run;
}

const Bar* BarOf(const Job& job, Kind kind) {
  for (const Bar& bar : job.bars) {
    if (bar.kind == kind) return &bar;
  }
  return nullptr;
}

TEST(JobTest, TheBarsFallFromWhatWasPaidToUsefulWork) {
  const Job job = JobOf({ARun(0, 100), ARun(120, 200)});
  EXPECT_EQ(job.paid_ns, 400 * kSecond);
  EXPECT_EQ(job.useful_ns, 360 * kSecond * 4 / 5);
  ASSERT_EQ(job.bars.size(), 3u);
  EXPECT_EQ(job.bars.front().kind, Kind::kBetween);
  EXPECT_EQ(job.bars.back().kind, Kind::kWork);
  ASSERT_EQ(job.bars.back().of.size(), 2u);
  EXPECT_EQ(job.bars.back().of[1].run, 1u);
  EXPECT_EQ(job.bars.back().of[1].device_ns, 160 * kSecond * 4 / 5);
}

TEST(JobTest, TimeBetweenRunsOfOneAllocationIsPaid) {
  const Job job = JobOf({ARun(0, 100), ARun(130, 200)});
  ASSERT_NE(BarOf(job, Kind::kBetween), nullptr);
  EXPECT_EQ(BarOf(job, Kind::kBetween)->device_ns, 60 * kSecond);
  EXPECT_THAT(NotesOn(job), IsEmpty());
}

// The scheduler took the devices away, and gave others later.
TEST(JobTest, TimeUntilARestartIsNotPaidAndIsSaid) {
  const Job job = JobOf({ARun(0, 100), ARun(130, 200, 1)});
  EXPECT_EQ(BarOf(job, Kind::kBetween), nullptr);
  EXPECT_EQ(job.paid_ns, 340 * kSecond);
  EXPECT_EQ(job.restarts, 1);
  EXPECT_THAT(NotesOn(job), ElementsAre(HasSubstr("30 s before run 2 are in no bar")));
}

TEST(JobTest, WhereTheAllocationsBeginIsKnownTheTimeUntilItsFirstRunIsPaid) {
  RunAccount first = ARun(10, 100), second = ARun(160, 200, 1);
  first.job_start_unix_s = kBegin / kSecond;
  second.job_start_unix_s = kBegin / kSecond + 155;
  const Job job = JobOf({first, second});
  const Bar* bar = BarOf(job, Kind::kBetween);
  ASSERT_NE(bar, nullptr);
  EXPECT_EQ(NameForPeople(*bar), "before its first run");
  EXPECT_EQ(bar->device_ns, 30 * kSecond);
  EXPECT_THAT(NotesOn(job), ElementsAre(HasSubstr("55 s before run 2")));
}

TEST(JobTest, RunsBesideEachOtherLeaveNoTimeBetweenThem) {
  const Job job = JobOf({ARun(0, 100), ARun(10, 40), ARun(90, 200)});
  EXPECT_EQ(BarOf(job, Kind::kBetween), nullptr);
  EXPECT_EQ(job.paid_ns, 480 * kSecond);
}

TEST(JobTest, ARunThatIsFoundTwiceCountsOnce) {
  EXPECT_EQ(JobOf({ARun(0, 100), ARun(0, 100)}).runs.size(), 1u);
}

// Nobody knows who held what between two runs that are of no job.
TEST(JobTest, WithoutAJobThereIsNoTimeBetweenRuns) {
  RunAccount first = ARun(0, 100), second = ARun(130, 200);
  first.job = second.job = "";
  const Job job = JobOf({first, second});
  EXPECT_THAT(job.gaps, IsEmpty());
  EXPECT_EQ(job.paid_ns, 340 * kSecond);
}

// From then on, in seconds after the job's begin.
Allocation AnAllocation(int64_t begin_s, int64_t end_s, int64_t devices = 0) {
  return {kBegin + begin_s * kSecond, kBegin + end_s * kSecond, devices, "COMPLETED"};
}

TEST(JobTest, AllThatTheAccountingSaysIsPaidAndWhatLiesBetweenIsNot) {
  const Job job = JobOf({ARun(10, 100), ARun(160, 200, 1)}, {AnAllocation(0, 104), AnAllocation(150, 203)});
  EXPECT_EQ(job.paid_ns, kSecond * 2 * (104 + 53));
  ASSERT_EQ(job.bars.size(), 4u);
  EXPECT_EQ(NameForPeople(job.bars[0]), "before its first run");
  EXPECT_EQ(job.bars[0].device_ns, kSecond * 2 * (10 + 10));
  EXPECT_EQ(NameForPeople(job.bars[1]), "after its last run");
  EXPECT_EQ(job.bars[1].device_ns, kSecond * 2 * (4 + 3));
  EXPECT_THAT(NotesOn(job),
              ElementsAre(HasSubstr("46 s before run 2 are in no bar"), HasSubstr("2 allocations")));
}

TEST(JobTest, WhatTheAccountingLeavesOutOfItsLastSecondItCountsInItsFirst) {
  const Job job = JobOf({ARun(1, 100)}, {AnAllocation(0, 99)});
  EXPECT_EQ(job.paid_ns, kSecond * 2 * 99);
  EXPECT_EQ(BarOf(job, Kind::kBetween), nullptr);
}

TEST(JobTest, DevicesThatNoRunUsedWerePaid) {
  const Job job = JobOf({ARun(10, 100)}, {AnAllocation(0, 100, 8)});
  EXPECT_EQ(job.paid_ns, kSecond * 8 * 100);
  EXPECT_EQ(NameForPeople(job.bars[0]), "held, in no run");
  EXPECT_EQ(job.bars[0].device_ns, kSecond * 6 * 90);
}

TEST(JobTest, AnAllocationOfWhichNoRunWasRecordedWasPaid) {
  const Job job = JobOf({ARun(0, 100, 1)}, {AnAllocation(-60, -40, 2), AnAllocation(0, 100, 2)});
  EXPECT_EQ(job.paid_ns, kSecond * 2 * (20 + 100));
  EXPECT_EQ(NameForPeople(job.bars[0]), "held, in no run");
  EXPECT_EQ(job.allocations.size(), 2u);
}

TEST(JobTest, AnOlderJobWithTheSameNumberIsNotPartOfIt) {
  const Job job = JobOf({ARun(0, 100)}, {AnAllocation(-9000, -8000), AnAllocation(0, 101)});
  EXPECT_EQ(job.paid_ns, kSecond * 2 * 101);
  EXPECT_EQ(job.allocations.size(), 1u);
}

// Its row is not there yet, or the clocks of two machines disagree by more than a second.
TEST(JobTest, ARunThatIsInNoAllocationOfTheAccountingCountsAsItWouldWithoutIt) {
  const Job job = JobOf({ARun(0, 100), ARun(200, 300, 1)}, {AnAllocation(0, 100)});
  EXPECT_EQ(job.paid_ns, kSecond * 2 * 200);
  EXPECT_THAT(NotesOn(job), ElementsAre(HasSubstr("before run 2"), HasSubstr("1 allocation.")));
}

TEST(JobTest, WhatIsNotKnownOfLostStepsIsSaid) {
  RunAccount died = ARun(0, 100, 0, 137);
  died.lost_unknown = true;
  EXPECT_THAT(NotesOn(JobOf({died, ARun(120, 200)})), ElementsAre(HasSubstr("Run 1 ended badly")));
}

TEST(JobTest, AJobThatGoesOnSaysSo) {
  RunAccount live = ARun(0, 100);
  live.ended = false;
  live.exit_status.reset();
  EXPECT_TRUE(JobOf({live}).goes_on());
  EXPECT_EQ(HowItEnded(live), "goes on");
  live.cut_off = true;
  EXPECT_FALSE(JobOf({live}).goes_on());
  EXPECT_EQ(HowItEnded(live), "cut off");
}

TEST(JobTest, UseIsThatOfTheLongestRunWithThePeaksOfAll) {
  RunAccount longest = ARun(0, 100), other = ARun(120, 150);
  longest.use.cores_given = 8;
  longest.use.cores_mean = 1;
  longest.use.cores_p95 = 2;
  other.use.cores_p95 = 6;
  const Job job = JobOf({longest, other});
  EXPECT_EQ(job.use.cores_mean, 1);
  EXPECT_EQ(job.use.cores_p95, 6);
  EXPECT_THAT(NotesOn(job), IsEmpty());
}

TEST(JobTest, StepsSideBySideUseTogetherWhatTheirJobAskedFor) {
  RunAccount one = ARun(0, 100), beside = ARun(50, 100), after = ARun(100, 120);
  for (RunAccount* run : {&one, &beside, &after}) {
    run->id += std::to_string(run->begin_unix_ns);
    run->use.cores_given = 8;
    run->use.cores_mean = 2;
    run->use.cores_p95 = 3;
    run->use.memory_given_bytes = 64'000'000'000;
    run->use.memory_peak_bytes = 20'000'000'000;
  }
  const Job job = JobOf({one, beside, after});
  EXPECT_EQ(job.use.cores_mean, 3) << "the other one was there for half of the time";
  EXPECT_EQ(job.use.cores_p95, 6);
  EXPECT_EQ(job.use.memory_peak_bytes, 40'000'000'000);
  EXPECT_THAT(NotesOn(job), IsEmpty());
  EXPECT_THAT(NotesOn(JobOf({one})), SizeIs(2)) << "alone it needs neither";
}

TEST(JobTest, WhatOneRunDoesNotKnowOfItselfIsNotKnownOfTheJob) {
  RunAccount script = ARun(0, 100), step = ARun(10, 90);
  script.use.gpus_given = step.use.gpus_given = 2;
  script.use.gpus_used = 0;
  EXPECT_FALSE(JobOf({script, step}).use.gpus_used);
  step.end_unix_ns = step.begin_unix_ns + kSecond;
  EXPECT_EQ(JobOf({script, step}).use.gpus_used, 0) << "too short to matter";
}

// A job's script that calls `fullbore run`, and is recorded from outside.
TEST(JobTest, WhatARunWithinAnotherUsedCountsOnce) {
  RunAccount outer = ARun(0, 100), inner = ARun(10, 90);
  inner.id = "inner";
  outer.use.sees_runs_within = true;
  for (RunAccount* run : {&outer, &inner}) {
    run->use.cores_given = 8;
    run->use.cores_mean = 2;
    run->use.cores_p95 = 3;
  }
  const Job job = JobOf({outer, inner});
  EXPECT_EQ(job.use.cores_mean, 2);
  EXPECT_EQ(job.use.cores_p95, 3);
  EXPECT_THAT(NotesOn(job), ElementsAre("Of the cores that it asked for, half would have been enough."));
}

TEST(JobTest, WhatWasOverAskedIsSaidOfTimeOnlyWhereItEndedWell) {
  RunAccount run = ARun(0, 100);
  run.use.time_given_ns = 7200 * kSecond;
  run.use.time_used_ns = 100 * kSecond;
  EXPECT_THAT(NotesOn(JobOf({run})),
              ElementsAre("Of the time that it asked for, half would have been enough."));
  run.exit_status = 1;
  EXPECT_THAT(NotesOn(JobOf({run})), IsEmpty());
}

TEST(JobTest, TheTextNamesEachBarsRunsAndHowTheyEnded) {
  const std::string text = ToText(JobOf({ARun(0, 7200, 0, 1), ARun(7200, 10800, 1)}), false);
  EXPECT_THAT(text, HasSubstr("job 4711 of anna: 2 runs, 1 restart"));
  EXPECT_THAT(text, HasSubstr("6.0 device hours paid, 4.8 of it useful work (80 %)"));
  EXPECT_THAT(text, HasSubstr("waiting (input-bound)            1.2    20 %  1-2"));
  EXPECT_THAT(text, HasSubstr("exit 1"));
  EXPECT_THAT(text, Not(HasSubstr("asked for")));
}

TEST(JobTest, AShortJobIsToldInSecondsAndMinutes) {
  const std::string text = ToText(JobOf({ARun(0, 100)}), false);
  EXPECT_THAT(text, HasSubstr("3 min 20 s of device time paid, 2 min 40 s of it useful work (80 %)"));
  EXPECT_THAT(text, HasSubstr("useful work               2 min 40 s    80 %  1"));
}

TEST(JobTest, WhatCannotBeJudgedIsSaidBesideWhatIsUseful) {
  RunAccount run = ARun(0, 7200);
  run.parts = {{Kind::kNotJudged, "", run.given_ns}};
  EXPECT_THAT(ToText(JobOf({run}), false), HasSubstr("0.000 of it useful work (0 %), 4.0 not judged"));
}

TEST(JobTest, ANameMayHoldWhatNoTerminalMustSee) {
  RunAccount run = ARun(0, 100);
  run.job_name = "a\x1b[31mb";
  EXPECT_THAT(ToText(JobOf({run}), true), HasSubstr("a\\x1b[31mb"));
}

TEST(JobTest, TheJsonSumsUp) {
  const auto json = ToJson(JobOf({ARun(0, 100), ARun(130, 200)}));
  int64_t sum = 0;
  for (const auto& bar : json["bars"]) sum += bar["device_ns"].get<int64_t>();
  EXPECT_EQ(sum, json["paid_ns"].get<int64_t>());
  EXPECT_EQ(json["bars"].back()["runs"][1]["number"], 2);
  EXPECT_EQ(json["runs"][0]["state"], "ended");
  EXPECT_FALSE(json.contains("allocations"));
}

TEST(JobTest, TheJsonHasTheAllocationsAndNoRunAfterTheLast) {
  const auto json = ToJson(JobOf({ARun(0, 100)}, {AnAllocation(0, 102, 2)}));
  EXPECT_EQ(json["allocations"][0]["devices"], 2);
  EXPECT_EQ(json["allocations"][0]["state"], "COMPLETED");
  EXPECT_TRUE(json["gaps"][0]["paid"]);
  EXPECT_FALSE(json["gaps"][0].contains("before_run"));
}

}  // namespace
}  // namespace fullbore::fleet
