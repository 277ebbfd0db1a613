#include "watch/live_run.h"

#include <gtest/gtest.h>

#include "base/testing/scratch_directory.h"
#include "watch/testing/live_writer.h"

namespace fullbore::watch {
namespace {

using testing::LiveWriter;

class LiveRunTest : public ::testing::Test {
 protected:
  ScratchDirectory directory_;
  LiveRun run_{directory_ / "a.fbr"};
};

// Prometheus takes a counter that falls for a process that started anew.
TEST_F(LiveRunTest, StepsStayCountedInALongPause) {
  LiveWriter writer(directory_.path(), "a", 0.6);
  writer.Seconds(10);
  ASSERT_TRUE(run_.LookAtWindow().ok());
  EXPECT_EQ(run_.steps(), 100);
  writer.Pause(120);
  ASSERT_TRUE(run_.LookAtWindow().ok());
  EXPECT_EQ(run_.of_window().steps, 0);
  EXPECT_EQ(run_.steps(), 100);
  writer.Seconds(5);
  ASSERT_TRUE(run_.LookAtWindow().ok());
  EXPECT_EQ(run_.steps(), 150);
}

TEST_F(LiveRunTest, ALookAtAllTellsWhatWasBeforeTheFirstWindow) {
  LiveWriter writer(directory_.path(), "a", 0.6);
  writer.Seconds(10).Pause(120);
  ASSERT_TRUE(run_.LookAtWindow().ok());
  EXPECT_EQ(run_.steps(), 0);
  ASSERT_TRUE(run_.LookAtAll().ok());
  EXPECT_EQ(run_.steps(), 100);
  EXPECT_EQ(run_.end_ns() - run_.begin_ns(), 130 * kNsPerSecond);
}

TEST_F(LiveRunTest, ANewStageIsCountedFromItsOwnBegin) {
  LiveWriter(directory_.path(), "a", 0.6).Seconds(10).End();
  ASSERT_TRUE(run_.LookAtWindow().ok());
  EXPECT_EQ(run_.steps(), 100);
  LiveWriter next(directory_.path(), "a", 0.6);
  next.Seconds(3);
  ASSERT_TRUE(run_.LookAtWindow().ok());
  EXPECT_EQ(run_.steps(), 30);
  EXPECT_EQ(run_.end_ns() - run_.begin_ns(), 3 * kNsPerSecond);
}

}  // namespace
}  // namespace fullbore::watch
