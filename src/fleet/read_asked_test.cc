#include "fleet/read_asked.h"

#include <gmock/gmock.h>

#include "base/clock.h"
#include "base/testing/scratch_directory.h"
#include "fleet/testing/sums_in.h"

namespace fullbore::fleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

// Of anna's job 4711 with 16 cores, from then to then in seconds.
RunAccount ARun(const std::string& id, int64_t begin_s, int64_t end_s, double cores_used) {
  RunAccount run;
  run.id = id;
  run.path = "/runs/" + id + ".fbr";
  run.user = "anna";
  run.job = "4711";
  run.begin_unix_ns = begin_s * kNsPerSecond;
  run.end_unix_ns = end_s * kNsPerSecond;
  run.ended = true;
  run.use.cores_given = 16;
  run.use.cores_mean = run.use.cores_p95 = cores_used;
  return run;
}

auto Asked(const std::string& what, size_t jobs, size_t runs, double given, double used) {
  return AllOf(Field(&AskedSum::what, what), Field(&AskedSum::jobs, jobs), Field(&AskedSum::runs, runs),
               Field(&AskedSum::given, given), Field(&AskedSum::used, used));
}

TEST(ReadAskedTest, AScriptAndItsStepsAreJudgedByWhatTheyUsedTogether) {
  const auto script = ARun("batch", 0, 100, 1);
  EXPECT_THAT(SumsIn({script, ARun("0", 5, 50, 4), ARun("1", 50, 95, 3)}).asked,
              ElementsAre(Asked("cores", 1, 3, 16, 5)));
  EXPECT_THAT(SumsIn({script, ARun("0", 5, 50, 4), ARun("1", 40, 95, 4)}).asked, IsEmpty()) << "9 at once";
}

TEST(ReadAskedTest, AStepOfFewCoresThatAreBusyIsPartOfAJobOfMany) {
  RunAccount step = ARun("0", 5, 50, 2);
  step.use.cores_given = 2;
  EXPECT_THAT(SumsIn({ARun("batch", 0, 100, 0.1), step}).asked, ElementsAre(Asked("cores", 1, 2, 16, 2.1)));
}

TEST(ReadAskedTest, ARunThatSawTheOthersCountsByItself) {
  RunAccount outer = ARun("batch", 0, 100, 5);
  outer.use.sees_runs_within = true;
  EXPECT_THAT(SumsIn({outer, ARun("inner", 5, 50, 5)}).asked, ElementsAre(Asked("cores", 1, 2, 16, 5)));
}

TEST(ReadAskedTest, OfAJobWithARunThatDoesNotKnowNothingIsSaid) {
  RunAccount unknown = ARun("0", 5, 50, 0);
  unknown.use = {};
  EXPECT_THAT(SumsIn({ARun("batch", 0, 100, 1), unknown}).asked, IsEmpty());
  unknown.end_unix_ns = unknown.begin_unix_ns + kNsPerSecond;
  EXPECT_THAT(SumsIn({ARun("batch", 0, 100, 1), unknown}).asked, ElementsAre(Asked("cores", 1, 2, 16, 1)))
      << "too short to matter";
}

TEST(ReadAskedTest, GpusThatAScriptDidNotTouchMayBeItsSteps) {
  RunAccount script = ARun("batch", 0, 100, 15), step = ARun("0", 5, 95, 15);
  script.use.gpus_given = step.use.gpus_given = 4;
  script.use.gpus_used = 0;
  EXPECT_THAT(SumsIn({script, step}).asked, IsEmpty());
  step.use.gpus_used = 4;
  EXPECT_THAT(SumsIn({script, step}).asked, IsEmpty());
  step.use.gpus_used = 0;
  EXPECT_THAT(SumsIn({script, step}).asked, ElementsAre(Asked("GPUs", 1, 2, 4, 0)));
}

TEST(ReadAskedTest, TimeIsJudgedByTheRunThatEndedLast) {
  constexpr int64_t kHour = 3600 * kNsPerSecond;
  RunAccount preempted = ARun("batch", 0, 100, 15), last = ARun("batch-2", 200, 300, 15);
  for (RunAccount* run : {&preempted, &last}) {
    run->use.time_given_ns = 10 * kHour;
    run->use.time_used_ns = 2 * kHour;
  }
  preempted.exit_status = 143;
  EXPECT_THAT(SumsIn({preempted, last}).asked, ElementsAre(Asked("time", 1, 2, 10.0 * kHour, 2.0 * kHour)));
  last.exit_status = 1;
  preempted.exit_status = 0;
  EXPECT_THAT(SumsIn({preempted, last}).asked, IsEmpty()) << "it might have needed all of it";
}

TEST(ReadAskedTest, JobsOfOneRunAndJobsOfManyAreAddedUp) {
  RunAccount alone = ARun("alone", 0, 100, 1);
  alone.job = "4712";
  RunAccount bens = ARun("bens", 0, 100, 1);
  bens.user = "ben";
  const auto runs = {ARun("batch", 0, 100, 1), ARun("0", 5, 50, 2), alone, bens};
  const Report report = ReportOn(SumsIn(runs), By::kUser);
  ASSERT_EQ(report.asked.size(), 1u);
  EXPECT_EQ(report.asked[0].jobs, 3u);
  EXPECT_EQ(report.asked[0].runs, 4u);
  EXPECT_DOUBLE_EQ(report.asked[0].used, 5.0 / 3);
  EXPECT_THAT(report.asked[0].users, ElementsAre("anna", "ben"));
}

TEST(ReadAskedTest, OfAJobOfWhichARunIsExemptNothingIsSaid) {
  RunAccount step = ARun("0", 5, 50, 1);
  step.command = "jupyter lab";
  EXPECT_THAT(
      SumsIn({ARun("batch", 0, 100, 1), step}, "", {{.command = "jupyter", .why = "a notebook"}}).asked,
      IsEmpty());
}

TEST(ReadAskedTest, AJobThatBeganBeforeIsNotOfThisTime) {
  const ScratchDirectory directory;
  Store store = Store::Open(directory / "fleet.db").value();
  int64_t changed_ns = 0;
  for (const RunAccount& run : {ARun("batch", 0, 500, 1), ARun("0", 50, 100, 1), ARun("1", 200, 300, 1)})
    ASSERT_TRUE(store.Put(run, {1, ++changed_ns}).ok());
  EXPECT_THAT(store.SumsOf({.since_unix_ns = 20 * kNsPerSecond})->asked, IsEmpty());
  EXPECT_THAT(store.SumsOf({})->asked, ElementsAre(Asked("cores", 1, 3, 16, 2)));
}

}  // namespace
}  // namespace fullbore::fleet
