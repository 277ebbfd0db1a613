#include "explain/replay/pipeline.h"

#include <gtest/gtest.h>

#include <limits>

namespace fullbore::replay {
namespace {

constexpr double kMs = 1e6;

Pipeline Even(double consume_ms, double fetch_ms, int64_t workers) {
  Pipeline pipeline;
  pipeline.consume_ns.assign(100, consume_ms * kMs);
  pipeline.fetch_ns.assign(64, fetch_ms * kMs);
  pipeline.workers = workers;
  return pipeline;
}

TEST(PipelineTest, WithoutWorkersFetchAndTrainingAddUp) {
  EXPECT_NEAR(Replay(Even(60, 40, 0)).step_ns, 100 * kMs, 1);
}

TEST(PipelineTest, TheSlowerOfTrainingAndWorkersSetsThePace) {
  EXPECT_NEAR(Replay(Even(60, 40, 1)).step_ns, 60 * kMs, kMs);
  EXPECT_NEAR(Replay(Even(20, 40, 1)).step_ns, 40 * kMs, kMs);
  EXPECT_NEAR(Replay(Even(20, 40, 2)).step_ns, 20 * kMs, kMs);
}

TEST(PipelineTest, TheWaitIsWhatTheTrainingDoesNotFill) {
  const Replayed replayed = Replay(Even(20, 50, 1));
  EXPECT_NEAR(replayed.wait_ns, 30 * kMs, kMs);
}

TEST(PipelineTest, CoresBoundWhatWorkersCanDo) {
  Pipeline pipeline = Even(20, 40, 8);
  pipeline.cores = 2;
  pipeline.train_cpu_ns = 20 * kMs;
  pipeline.fetch_cpu_ns = 40 * kMs;
  const Replayed replayed = Replay(pipeline);
  EXPECT_TRUE(replayed.cpu_bound);
  EXPECT_GE(replayed.step_ns, 30 * kMs);  // 60 ms of work on two cores, which are never reached entirely
  EXPECT_LE(replayed.step_ns, 38 * kMs);
}

TEST(PipelineTest, AWorkerHandsItsBatchesOverAndTheTrainingTakesThem) {
  Pipeline pipeline = Even(20, 40, 1);
  pipeline.send_ns = 2 * kMs;
  pipeline.receive_ns = 3 * kMs;
  EXPECT_NEAR(Replay(pipeline).step_ns, 42 * kMs, kMs);
  for (double& ns : pipeline.fetch_ns) ns = 5 * kMs;
  EXPECT_NEAR(Replay(pipeline).step_ns, 23 * kMs, kMs);
  pipeline.workers = 0;
  EXPECT_NEAR(Replay(pipeline).step_ns, 25 * kMs, 1);
}

// 20 ms of a step on two threads of two cores: 30 ms of work, of which 20 ms are shared.
Pipeline OnAPool() {
  Pipeline pipeline = Even(20, 40, 0);
  pipeline.cores = pipeline.cores_alone = pipeline.threads = 2;
  pipeline.parallel_ns = 20 * kMs;
  pipeline.train_cpu_ns = 40 * kMs;  // the second thread spins
  pipeline.fetch_cpu_ns = 40 * kMs;
  return pipeline;
}

TEST(PipelineTest, AWorkerOnTheCoresOfAPoolBringsNothing) {
  const Pipeline pool = OnAPool();
  EXPECT_GT(Replay(WithWorkers(pool, 1)).step_ns, Replay(pool).step_ns);
  Pipeline roomy = pool;
  roomy.cores = roomy.cores_alone = 4;
  EXPECT_LT(Replay(WithWorkers(roomy, 1)).step_ns, 0.8 * Replay(pool).step_ns);
}

TEST(PipelineTest, AWorkerBesideOneThreadBringsWhatItLoads) {
  const Pipeline one = WithThreads(OnAPool(), 1);
  EXPECT_NEAR(Replay(one).step_ns, 70 * kMs, kMs) << "30 ms of work and 40 ms of loading";
  EXPECT_NEAR(Replay(WithWorkers(one, 1)).step_ns, 40 * kMs, kMs);
}

TEST(PipelineTest, TheSameNumberOfThreadsChangesNothing) {
  EXPECT_EQ(Replay(WithThreads(OnAPool(), 2)).step_ns, Replay(OnAPool()).step_ns);
}

TEST(PipelineTest, TrainingThatStopsForNothingIsFasterAndMayBeMoreSo) {
  Pipeline pipeline = OnAPool();
  for (double& ns : pipeline.fetch_ns) ns = kMs;
  pipeline.fetch_cpu_ns = kMs;
  const Prediction broken = PredictStep(pipeline);
  pipeline.apart = kPoolApart;
  pipeline.unbroken = true;
  const Prediction unbroken = PredictStep(pipeline);
  EXPECT_LT(unbroken.expected_ns, broken.expected_ns);
  EXPECT_LT(unbroken.hopeful_ns, unbroken.expected_ns);
  EXPECT_GE(unbroken.cautious_ns, broken.expected_ns) << "perhaps its threads never slept";
}

TEST(PipelineTest, WithoutTheSleepTheRestIsFasterOrAsItWas) {
  Pipeline pipeline = Even(20, 1, 0);
  pipeline.pause_ns = 100 * kMs;
  EXPECT_EQ(PredictStep(WithoutSleep(pipeline)).expected_ns, 21 * kMs) << "a device does not suffer from it";
  pipeline.on_host = true;
  const Prediction one = PredictStep(WithoutSleep(pipeline));
  EXPECT_NEAR(one.expected_ns, (21 - 99 * kPauseOfOne.expected) * kMs, 1) << "1 ms of waiting stays";
  EXPECT_GT(one.cautious_ns, 21 * kMs) << "perhaps it does not, either";
  pipeline.has_pool = true;
  const Prediction pool = PredictStep(WithoutSleep(pipeline));
  EXPECT_NEAR(pool.expected_ns, (21 - 99 * kPauseOfPool.expected) * kMs, 1);
  EXPECT_LT(pool.hopeful_ns, 3 * kMs) << "of 20 ms, a tenth is left";
}

TEST(PipelineTest, OfAPauseThatStaysInPartTheRestCostsAsBefore) {
  Pipeline pipeline = Even(20, 50, 1);  // 30 ms of each step are a wait for what one worker still computes
  pipeline.pause_ns = 100 * kMs;
  pipeline.on_host = pipeline.has_pool = true;
  pipeline.apart = kPoolApart;
  pipeline.unbroken = true;
  const double fetched_faster = PredictStep(WithoutSleep(WithWorkers(pipeline, 10))).expected_ns;
  EXPECT_NEAR(fetched_faster, (20 - 100 * kPauseOfPool.expected) * kMs, kMs) << "nor does it count twice";
  EXPECT_NEAR(PredictStep(WithoutSleep(pipeline)).expected_ns, 50 * kMs, kMs) << "the worker sets the pace";
}

TEST(PipelineTest, ALongPauseCostsNoMoreThanTheScheduler) {
  Pipeline pipeline = Even(100, 1, 0);
  pipeline.on_host = pipeline.has_pool = true;
  pipeline.pause_ns = 1'000 * kMs;
  EXPECT_NEAR(PredictStep(WithoutSleep(pipeline)).expected_ns, 101 * kMs - kLongestWakingNs, 1);
  for (double& ns : pipeline.consume_ns) ns = 10 * kMs;
  EXPECT_NEAR(PredictStep(WithoutSleep(pipeline)).expected_ns, 2 * kMs, 1) << "nor all that there is";
}

TEST(PipelineTest, MoreProcessesThanCoresWaitForTheirTurns) {
  Pipeline pipeline = Even(20, 40, 1);
  pipeline.cores = 2;
  pipeline.train_cpu_ns = pipeline.fetch_cpu_ns = 40 * kMs;
  EXPECT_NEAR(Replay(pipeline).step_ns, 80 * kMs / (2 * kCoresReached), 1);
  pipeline.workers = 2;
  EXPECT_NEAR(Replay(pipeline).step_ns, 80 * kMs / (2 * kCoresReached) + kTurnNs, 1);
}

TEST(PipelineTest, EachEpochStartsItsWorkersAnew) {
  Pipeline pipeline = Even(20, 10, 0);
  pipeline.starts_per_step = 0.1;
  pipeline.start_ns = 25 * kMs;
  EXPECT_NEAR(Replay(pipeline).step_ns, 30 * kMs, 1) << "there is none to start";
  const double with_two = Replay(WithWorkers(pipeline, 2)).step_ns;
  pipeline.start_ns = 0;
  EXPECT_NEAR(with_two - Replay(WithWorkers(pipeline, 2)).step_ns, 0.1 * 2 * 25 * kMs, 1);
}

TEST(PipelineTest, OneSlowBatchInTenIsHiddenByPrefetchAsFarAsItReaches) {
  Pipeline pipeline = Even(20, 10, 2);
  for (size_t i = 0; i < pipeline.fetch_ns.size(); i += 10) pipeline.fetch_ns[i] = 25 * kMs;
  EXPECT_NEAR(Replay(pipeline).step_ns, 20 * kMs, kMs);
  for (size_t i = 0; i < pipeline.fetch_ns.size(); i += 10) pipeline.fetch_ns[i] = 400 * kMs;
  EXPECT_GT(Replay(pipeline).step_ns, 22 * kMs);
}

TEST(PipelineTest, SeveralBatchesAStepAreAllWaitedFor) {
  Pipeline pipeline = Even(50, 40, 0);
  pipeline.batches_per_step = 4;
  EXPECT_NEAR(Replay(pipeline).step_ns, 210 * kMs, 1);
}

TEST(PipelineTest, TimesBeyondAllMeasureDoNotOverflow) {
  constexpr double kHalfADayNs = 12 * 3600e9;
  for (const int64_t workers : {0, 2}) {
    Pipeline pipeline = Even(1e300, 1e300, workers);
    pipeline.send_ns = std::numeric_limits<double>::infinity();
    pipeline.receive_ns = 1e19;
    EXPECT_GT(Replay(pipeline).step_ns, kHalfADayNs);
  }
  Pipeline unknown = Even(20, std::numeric_limits<double>::quiet_NaN(), 0);
  EXPECT_NEAR(Replay(unknown).step_ns, 20 * kMs, kMs);
}

TEST(FewestWorkersTest, TakesNoMoreThanTheTrainingCanUse) {
  EXPECT_EQ(FewestWorkers(Even(20, 55, 0), 16), 3);
  EXPECT_EQ(FewestWorkers(Even(100, 55, 0), 16), 1);
}

// As a file can claim them: without bounds this would not end.
TEST(FewestWorkersTest, NoNumberOfWorkersAndOfBatchesIsTooManyToTry) {
  Pipeline pipeline = Even(20, 40, int64_t{1} << 40);
  pipeline.batches_per_step = 1 << 12;
  pipeline.prefetch = int64_t{1} << 40;
  EXPECT_GT(Replay(pipeline).step_ns, 0);
  EXPECT_LE(FewestWorkers(pipeline, int64_t{1} << 40), 256);
}

TEST(PredictStepTest, TheExpectedValueLiesInsideItsRange) {
  const Prediction step = PredictStep(Even(60, 40, 1));
  EXPECT_NEAR(step.expected_ns, 60 * kMs, kMs);
  EXPECT_LT(step.hopeful_ns, step.expected_ns);
  EXPECT_GT(step.cautious_ns, step.expected_ns);
}

}  // namespace
}  // namespace fullbore::replay
