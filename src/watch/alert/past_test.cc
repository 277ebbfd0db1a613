#include "watch/alert/past.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "record/metrics.h"

namespace fullbore::watch {
namespace {

using record::Metric;
using ::testing::Field;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// Ten steps of 100 ms that end at this second.
record::StepWindow Window(int64_t end_s, int64_t first_step) {
  record::StepWindow window;
  window.begin_ns = (end_s - 1) * kNsPerSecond;
  window.end_ns = end_s * kNsPerSecond;
  window.first_step = first_step;
  window.steps = 10;
  window.samples = 320;
  window.max_wall_ns = 150 * kNsPerMs;
  window.share_ns[0] = kNsPerSecond;
  return window;
}

record::Stage Stage(int64_t seconds) {
  record::Stage stage;
  record::RankInfo& lead = stage.ranks.emplace_back();
  lead.samples_known = true;
  for (int64_t s = 1; s <= seconds; ++s) lead.windows.push_back(Window(s, 10 * (s - 1)));
  return stage;
}

void Add(record::Stage& stage, Metric metric, std::vector<record::Reading> readings,
         const record::Labels& labels = {}) {
  stage.series.push_back({record::KeyOf(metric, labels), std::move(readings)});
}

TEST(PastTest, AStretchOfStepsIsAPace) {
  Past past;
  past.Take(Stage(2), 10 * kNsPerSecond);
  ASSERT_THAT(past.paces(), SizeIs(2));
  EXPECT_EQ(past.paces()[1].end_ns, 2 * kNsPerSecond);
  EXPECT_EQ(past.paces()[1].steps, 10);
  EXPECT_EQ(past.paces()[1].samples, 320);
  EXPECT_EQ(past.paces()[1].working_ns, kNsPerSecond);
  EXPECT_EQ(past.paces()[1].longest_ns, 150 * kNsPerMs);
  EXPECT_EQ(past.first_step_ns(), kNsPerSecond);
  EXPECT_EQ(past.steps(), 20);
  EXPECT_TRUE(past.samples_known());
}

TEST(PastTest, ValidationAndCheckpointsAreNoPartOfThePace) {
  record::Stage stage = Stage(1);
  auto& parts = stage.ranks[0].windows[0].host_other_ns;
  parts[static_cast<size_t>(record::HostOther::kValidation)] = 300 * kNsPerMs;
  parts[static_cast<size_t>(record::HostOther::kCheckpoint)] = 200 * kNsPerMs;
  Past past;
  past.Take(stage, kNsPerSecond);
  ASSERT_THAT(past.paces(), SizeIs(1));
  EXPECT_EQ(past.paces()[0].working_ns, 500 * kNsPerMs);
}

TEST(PastTest, EachStretchIsTakenOnceAndNoneBeforeItsTime) {
  const record::Stage stage = Stage(5);
  Past past;
  past.Take(stage, 3 * kNsPerSecond);
  EXPECT_THAT(past.paces(), SizeIs(3));
  past.Take(stage, 3 * kNsPerSecond);
  EXPECT_THAT(past.paces(), SizeIs(3));
  past.Take(stage, 5 * kNsPerSecond);
  EXPECT_THAT(past.paces(), SizeIs(5));
  EXPECT_EQ(past.last_step_ns(), 5 * kNsPerSecond);
}

TEST(PastTest, ThePaceIsTheLeadRanksAndTheLastStepIsThatOfAny) {
  record::Stage stage = Stage(3);
  stage.ranks.emplace_back().windows = {Window(4, 30)};
  Past past;
  past.Take(stage, 9 * kNsPerSecond);
  EXPECT_THAT(past.paces(), SizeIs(3));
  EXPECT_EQ(past.steps(), 30);
  EXPECT_EQ(past.last_step_ns(), 4 * kNsPerSecond);
}

TEST(PastTest, HoweverLongTheRunItTakesNoMoreMemoryAndLosesNoStep) {
  constexpr int64_t kSeconds = 50'000;
  Past past;
  for (int64_t s = 1; s <= kSeconds; ++s) {
    record::Stage stage;
    stage.ranks.emplace_back().windows = {Window(s, 10 * (s - 1))};
    past.Take(stage, s * kNsPerSecond);
  }
  EXPECT_LE(past.paces().size(), 20'000U);
  int64_t steps = 0;
  for (const Pace& pace : past.paces()) steps += pace.steps;
  EXPECT_NEAR(static_cast<double>(steps), 10.0 * kSeconds, 10.0 * 4) << "an odd one out at each halving";
}

TEST(PastTest, MemoryAndDisksAreKnownWithTheirSizes) {
  record::Stage stage;
  Add(stage, Metric::kMemoryTotal, {{0, 64e9}});
  Add(stage, Metric::kMemoryUsed, {{1, 10e9}, {2, 11e9}});
  Add(stage, Metric::kDiskSpaceTotal, {{0, 1e12}}, {{"mount", "/data"}});
  Add(stage, Metric::kDiskSpaceUsed, {{1, 5e11}}, {{"mount", "/data"}});
  Add(stage, Metric::kDiskSpaceUsed, {{1, 5e11}}, {{"mount", "/of-unknown-size"}});
  Past past;
  past.Take(stage, 2);
  EXPECT_THAT(past.fillings(), UnorderedElementsAre(Pair("the machine's memory", Field(&Filling::size, 64e9)),
                                                    Pair("the disk at /data", Field(&Filling::size, 1e12))));
  EXPECT_FALSE(past.fillings().at("the machine's memory").is_disk);
  EXPECT_TRUE(past.fillings().at("the disk at /data").is_disk);
  EXPECT_EQ(past.fillings().at("the machine's memory").used.back().value, 11e9);
}

TEST(PastTest, PageCacheOfAContainerIsNotInUse) {
  record::Stage stage;
  Add(stage, Metric::kCgroupMemoryLimit, {{0, 8e9}});
  Add(stage, Metric::kCgroupMemoryUsed, {{1, 6e9}, {3, 7e9}});
  Add(stage, Metric::kCgroupMemoryCache, {{2, 4e9}});
  Past past;
  past.Take(stage, 3);
  const Filling& filling = past.fillings().at("the memory of the container or job");
  ASSERT_THAT(filling.used, SizeIs(2));
  EXPECT_EQ(filling.used[0].value, 6e9) << "how much of it is cache was not known yet";
  EXPECT_EQ(filling.used[1].value, 3e9);
}

TEST(PastTest, ReadingsAreKeptForTenMinutes) {
  record::Stage stage;
  Add(stage, Metric::kMemoryTotal, {{0, 64e9}});
  std::vector<record::Reading> used;
  for (int64_t s = 1; s <= 1000; ++s) used.push_back({s * kNsPerSecond, 1e9});
  Add(stage, Metric::kMemoryUsed, used);
  Past past;
  past.Take(stage, 1000 * kNsPerSecond);
  EXPECT_EQ(past.fillings().at("the machine's memory").used.front().t_ns, 400 * kNsPerSecond);
}

}  // namespace
}  // namespace fullbore::watch
