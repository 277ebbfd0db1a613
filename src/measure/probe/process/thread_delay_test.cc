#include "measure/probe/process/thread_delay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "measure/probe/testing/fake_machine.h"

namespace fullbore::probe {
namespace {

class ThreadDelayTest : public ::testing::Test {
 protected:
  void Waited(int64_t thread, double seconds) {
    files_.Write("/proc/100/task/" + std::to_string(thread) + "/schedstat",
                 "5000000000 " + std::to_string(static_cast<int64_t>(seconds * 1e9)) + " 70\n");
  }
  std::optional<double> Read(double t_s) { return delay_.Read(files_.root() + "/proc/100", Seconds(t_s)); }

  FakeMachine files_;
  ThreadDelay delay_;
};

TEST_F(ThreadDelayTest, AddsUpTheWaitsOfAllThreads) {
  Waited(100, 7);
  Waited(101, 9);
  EXPECT_FALSE(Read(10)) << "the first reading has nothing to compare with";
  Waited(100, 7.5);
  Waited(101, 10.5);
  EXPECT_DOUBLE_EQ(Read(12).value_or(-1), 1.0);
}

TEST_F(ThreadDelayTest, AThreadThatBeganSinceCountsFromItsBeginning) {
  Waited(100, 7);
  Read(10);
  Waited(99, 0.5);
  Waited(105, 0.25);
  EXPECT_DOUBLE_EQ(Read(11).value_or(-1), 0.75);
}

TEST_F(ThreadDelayTest, AThreadThatEndedTakesNothingFromTheOthers) {
  Waited(100, 7);
  Waited(101, 900);
  Waited(102, 3);
  Read(10);
  files_.Remove("/proc/100/task/101");
  Waited(102, 3.5);
  EXPECT_DOUBLE_EQ(Read(11).value_or(-1), 0.5);
}

TEST_F(ThreadDelayTest, ALaterThreadWithTheSameNumberStartsOver) {
  Waited(100, 7);
  Read(10);
  Waited(100, 0.25);
  EXPECT_DOUBLE_EQ(Read(11).value_or(-1), 0.25);
}

TEST_F(ThreadDelayTest, TimeAtRestIsNotSpreadOverTheWaitsAfterIt) {
  Waited(100, 7);
  Read(10);
  delay_.Rest(Seconds(99));
  Waited(100, 7.5);
  EXPECT_DOUBLE_EQ(Read(100).value_or(-1), 0.5);
}

TEST_F(ThreadDelayTest, NamesTheThreadsThatWaitedLongest) {
  Waited(100, 7);
  Waited(101, 900);
  Waited(102, 30);
  Read(10);
  EXPECT_THAT(delay_.MostDelayed(2), ::testing::ElementsAre(101, 102));
  EXPECT_EQ(delay_.MostDelayed(9).size(), 3);
}

TEST_F(ThreadDelayTest, IsUnknownWhereTheKernelDoesNotCount) {
  files_.MakeDirectory("/proc/100/task/100");
  EXPECT_FALSE(Read(10));
  EXPECT_FALSE(Read(11));
  Waited(100, 7);
  EXPECT_FALSE(Read(12)) << "what it waited before is of unknown age";
}

}  // namespace
}  // namespace fullbore::probe
