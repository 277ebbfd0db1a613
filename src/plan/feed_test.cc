// The measured loader: 177 images a second from one worker, about 440 on four cores of which two are one of the chip.
#include "plan/feed.h"

#include <gmock/gmock.h>

#include "plan/testing/practice.h"

namespace fullbore::plan {
namespace {

using testing::AT4;
using testing::Made;
using testing::RecordedOn;

replay::Prediction Steps(double ns) { return {ns, ns, ns}; }

TEST(FeedTest, FourCoresDeliverWhatWasMeasured) {
  const Recorded t4 = RecordedOn(AT4());
  ASSERT_TRUE(t4.loader);
  const Range alone = LoaderAlone(t4, {4, 2});
  RecordProperty("images_per_s", std::to_string(alone.expected));
  EXPECT_NEAR(alone.expected, 440, 0.1 * 440);
  EXPECT_LT(alone.low, 440);
  EXPECT_GT(alone.high, 440);
  EXPECT_NEAR(LoaderAlone(t4, {1, 1}).expected, 177, 0.06 * 177);
}

// Four workers that together deliver 440, for a device that could train 760: what one of them would do by itself is told
// by how many threads shared a core.
TEST(FeedTest, WhatAFullMachineDeliversIsRecordedAndStays) {
  const Recorded full = RecordedOn({.device = "Tesla V100-SXM2-16GB",
                                    .images_per_s = 440,
                                    .workers = 4,
                                    .images_per_s_of_worker = 110,
                                    .waits = 1 - 440.0 / 760});
  ASSERT_TRUE(full.loader);
  EXPECT_NEAR(LoaderAlone(full, {4, 2}).expected, 440, 0.06 * 440);
  EXPECT_NEAR(LoaderAlone(full, {1, 1}).expected, 177, 0.1 * 177);
  const double consume_ns = 128 / 760.0 * 1e9;
  EXPECT_NEAR(128 / Feed(full, Steps(consume_ns), 1, {4, 2}).step.expected_ns * 1e9, 440, 0.06 * 440);
  const Fed fed = Feed(full, Steps(consume_ns), 1, {12, 2});
  EXPECT_NEAR(128 / fed.step.expected_ns * 1e9, 760, 0.08 * 760) << "with 12 cores the device binds";
}

TEST(FeedTest, TheRecordedStepIsTheRecordedStep) {
  const Recorded t4 = RecordedOn(AT4());
  const Fed fed = Feed(t4, Steps(t4.step_ns - t4.wait_ns), 1, t4.cores);
  EXPECT_NEAR(fed.step.expected_ns, t4.step_ns, 0.02 * t4.step_ns);
  EXPECT_EQ(fed.workers, 2) << "the fewest that unblock it";
}

TEST(FeedTest, MoreCoresNeverLowerThroughput) {
  for (const int64_t gpus : {1, 2, 4, 8}) {
    for (const double threads : {1.0, 2.0}) {
      const Recorded t4 = RecordedOn(AT4());
      double last_ns = HUGE_VAL;
      for (const double cores : {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0}) {
        const double step_ns = Feed(t4, Steps(100e6), gpus, {cores, threads}).step.expected_ns;
        EXPECT_LE(step_ns, last_ns * 1.0001) << cores << " cores for " << gpus;
        last_ns = step_ns;
      }
    }
  }
}

TEST(FeedTest, TheCoresThatAreNeededSuffice) {
  const Recorded t4 = RecordedOn(AT4());
  const double consume_ns = 100e6;
  for (const int64_t gpus : {1, 2, 4}) {
    const double cores = std::ceil(CoresToFeed(t4, consume_ns, gpus, {4, 2}));
    EXPECT_LT(Feed(t4, Steps(consume_ns), gpus, {cores + 1, 2}).step.expected_ns, 1.1 * consume_ns);
    EXPECT_GT(Feed(t4, Steps(consume_ns), gpus, {cores / 2, 2}).step.expected_ns, 1.3 * consume_ns);
  }
}

}  // namespace
}  // namespace fullbore::plan
