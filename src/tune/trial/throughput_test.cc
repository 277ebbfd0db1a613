#include "tune/trial/throughput.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace fullbore::tune {
namespace {

using record::Step;

Step StepOf(double ms, int64_t samples, int64_t end_ns = 0) {
  Step step;
  step.wall_ns = static_cast<int64_t>(ms * 1e6);
  step.end_ns = end_ns;
  step.samples = samples;
  step.batches = 1;
  return step;
}

// Steps of about `ms` each, one after the other.
class ARun {
 public:
  void Steps(int count, double ms, int64_t samples = 8, int64_t prepared = 0, int rank = 0) {
    std::normal_distribution<double> noise(1, 0.01);
    for (int i = 0; i < count; ++i) {
      const double each = ms * noise(random_);
      now_ns_[rank] += static_cast<int64_t>(each * 1e6);
      throughput.Add(rank, StepOf(each, samples, now_ns_[rank]), prepared);
    }
  }
  Throughput throughput;

 private:
  std::mt19937 random_{7};
  std::map<int, int64_t> now_ns_;
};

TEST(ThroughputTest, IsNotKnownBeforeTenSteps) {
  ARun run;
  run.Steps(9, 10);
  EXPECT_FALSE(run.throughput.Steady().has_value());
}

TEST(ThroughputTest, IsSamplesOverTimeWithAnIntervalAroundIt) {
  ARun run;
  run.Steps(100, 10);
  const auto estimate = run.throughput.Steady();
  ASSERT_TRUE(estimate.has_value());
  EXPECT_NEAR(estimate->rate, 800, 8);
  EXPECT_LT(estimate->low, 800);
  EXPECT_GT(estimate->high, 800);
  EXPECT_LT(estimate->HalfWidth(), 0.01);
}

TEST(ThroughputTest, LeavesOutASlowStart) {
  ARun run;
  run.Steps(10, 100);
  run.Steps(60, 10);
  const auto estimate = run.throughput.Steady();
  ASSERT_TRUE(estimate.has_value());
  EXPECT_EQ(estimate->warmup_steps, 10);
  EXPECT_NEAR(estimate->rate, 800, 10);
}

TEST(ThroughputTest, LeavesOutWhatTheLoaderHadPrepared) {
  ARun run;
  run.Steps(16, 2, 8, 16);  // from a full queue
  run.Steps(40, 10, 8, 16);
  const auto estimate = run.throughput.Steady();
  ASSERT_TRUE(estimate.has_value());
  EXPECT_EQ(estimate->warmup_steps, 16);
  EXPECT_NEAR(estimate->rate, 800, 10);
}

TEST(ThroughputTest, LeavesOutStepsInWhichSomethingWasCompiled) {
  Throughput throughput;
  for (int i = 0; i < 40; ++i) {
    Step step = StepOf(10, 8);
    if (i == 5) step.host_other_ns[static_cast<size_t>(record::HostOther::kCompilation)] = 1000;
    throughput.Add(0, step, 0);
  }
  EXPECT_EQ(throughput.Steady()->warmup_steps, 6);
}

TEST(ThroughputTest, AddsTheSamplesOfAllRanks) {
  ARun run;
  for (int rank = 0; rank < 2; ++rank) run.Steps(50, 10, 8, 0, rank);
  const auto estimate = run.throughput.Steady();
  ASSERT_TRUE(estimate.has_value());
  EXPECT_NEAR(estimate->rate, 1600, 20);
}

TEST(ThroughputTest, KnowsHowFarTheFirstOfTheRanksIs) {
  ARun run;
  EXPECT_EQ(run.throughput.lead_steps(), 0);
  run.Steps(5, 10, 8, 0, /*rank=*/0);
  run.Steps(3, 10, 8, 0, /*rank=*/1);
  EXPECT_EQ(run.throughput.lead_steps(), 5);
}

TEST(ThroughputTest, CountsStepsWhereSamplesAreNotKnown) {
  ARun run;
  run.Steps(50, 10, 0);
  const auto estimate = run.throughput.Steady();
  ASSERT_TRUE(estimate.has_value());
  EXPECT_FALSE(estimate->counts_samples);
  EXPECT_NEAR(estimate->rate, 100, 1);
}

TEST(ThroughputTest, CountsStepsWhereTheyAreAskedFor) {
  ARun run;
  run.Steps(50, 10, 8);
  const auto estimate = run.throughput.Steady(/*in_steps=*/true);
  ASSERT_TRUE(estimate.has_value());
  EXPECT_FALSE(estimate->counts_samples);
  EXPECT_NEAR(estimate->rate, 100, 1);
}

TEST(SteadyReadingsTest, AreAveragedWithoutTheirSlowStart) {
  const auto estimate = SteadyReadings({10, 20, 100, 101, 99, 100, 100, 101, 99, 100});
  ASSERT_TRUE(estimate.has_value());
  EXPECT_NEAR(estimate->rate, 100, 0.5);
  EXPECT_LT(estimate->low, 100);
  EXPECT_GT(estimate->high, 100);
}

TEST(SteadyReadingsTest, AreLessSureWhereEachIsLikeTheOneBefore) {
  std::vector<double> slow, quick;
  for (int i = 0; i < 80; ++i) {
    slow.push_back(100 + 5 * std::sin(i * 0.16));
    quick.push_back(100 + 5 * std::sin(i * 2.5));
  }
  EXPECT_GT(SteadyReadings(slow)->HalfWidth(), 1.5 * SteadyReadings(quick)->HalfWidth());
}

TEST(SteadyReadingsTest, TwoAreTooFew) { EXPECT_FALSE(SteadyReadings({10, 10}).has_value()); }

}  // namespace
}  // namespace fullbore::tune
