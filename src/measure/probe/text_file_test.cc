#include "measure/probe/text_file.h"

#include <gtest/gtest.h>

#include "measure/probe/counter.h"
#include "measure/probe/testing/fake_machine.h"

namespace fullbore::probe {
namespace {

TEST(TextFileTest, ReadsAFileThatChangesInPlaceAgain) {
  FakeMachine machine;
  machine.Write("/proc/x", "one");
  TextFile file(machine.root() + "/proc/x");
  EXPECT_EQ(file.Read(), "one");
  machine.Write("/proc/x", "three");
  EXPECT_EQ(file.Read(), "three");
}

TEST(TextFileTest, ReadsFilesLargerThanItsFirstBuffer) {
  FakeMachine machine;
  const std::string text(100'000, 'x');
  machine.Write("/proc/x", text);
  EXPECT_EQ(TextFile(machine.root() + "/proc/x").Read(), text);
}

TEST(TextFileTest, FindsAFileThatAppearsLater) {
  FakeMachine machine;
  TextFile file(machine.root() + "/proc/x");
  EXPECT_FALSE(file.Read());
  EXPECT_EQ(file.error_number(), ENOENT);
  machine.Write("/proc/x", "here");
  EXPECT_EQ(file.Read(), "here");
}

TEST(TextFileTest, ReturnsNothingForAnUnreadableFile) {
  FakeMachine machine;
  machine.MakeDirectory("/proc/x");
  TextFile file(machine.root() + "/proc/x");
  EXPECT_FALSE(file.Read());
  EXPECT_EQ(file.error_number(), EISDIR);
}

TEST(WordCursorTest, SplitsWordsAndRejectsInvalidCounts) {
  WordCursor words("  12 -1 abc 18446744073709551615 18446744073709551616 7x");
  EXPECT_EQ(words.NextCount(), 12);
  EXPECT_FALSE(words.NextCount());
  EXPECT_EQ(words.Next(), "abc");
  EXPECT_EQ(words.NextCount(), UINT64_MAX);
  EXPECT_FALSE(words.NextCount());
  EXPECT_FALSE(words.NextCount());
  EXPECT_EQ(words.Next(), "");
}

TEST(CountAfterTest, FindsAWholeKeyOnly) {
  EXPECT_EQ(CountAfter("oom 1\noom_kill 3\n", "oom_kill"), 3);
  EXPECT_EQ(CountAfter("MemTotal:  1024 kB", "MemTotal:"), 1024);
  EXPECT_FALSE(CountAfter("oom_kill_disable 0\n", "oom_kill"));
  EXPECT_FALSE(CountAfter("oom_kill\n", "oom_kill"));
}

TEST(CounterTest, GivesARateFromTheSecondReadingOn) {
  Counter counter;
  EXPECT_FALSE(counter.RatePerSecond(Seconds(1), 1000));
  EXPECT_EQ(counter.RatePerSecond(Seconds(3), 1500), 250);
  EXPECT_FALSE(counter.RatePerSecond(Seconds(3), 1600)) << "no time passed";
}

TEST(CounterTest, StartsOverAfterAReset) {
  Counter counter;
  (void)counter.RatePerSecond(Seconds(1), 1000);
  EXPECT_FALSE(counter.RatePerSecond(Seconds(2), 10));
  EXPECT_EQ(counter.RatePerSecond(Seconds(3), 20), 10);
}

TEST(CounterTest, FollowsACounterOf32BitsThroughItsWrap) {
  Counter counter(Counter::Width::k32);
  (void)counter.RatePerSecond(Seconds(1), 0xFFFFFFF0);
  EXPECT_EQ(counter.RatePerSecond(Seconds(2), 0x10), 0x20);
  EXPECT_FALSE(counter.RatePerSecond(Seconds(3), 0x5)) << "a little less is a reset, not a wrap by 4 G";
}

}  // namespace
}  // namespace fullbore::probe
