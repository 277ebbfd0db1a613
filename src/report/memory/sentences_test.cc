#include "report/memory/sentences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/memory/json.h"
#include "report/memory/terminal.h"

namespace fullbore::report {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kGB = 1'000'000'000;

memory::DeviceAccount Quiet() {
  memory::DeviceAccount account;
  account.events = 4000;
  account.complete = true;
  account.peak_reserved = 20 * kGB;
  account.peak.moment = {2'310'000, 19 * kGB, 20 * kGB};
  account.peak.lines = {{"train.py:42 in forward", 10 * kGB, 300}, {"", 9 * kGB, 20}};
  account.as_recorded.emplace();
  account.as_recorded->peak_reserved = 20 * kGB;
  account.what_if.push_back(
      {"expandable_segments", {19 * kGB, 20 * kGB, 0, 3, std::nullopt, 0}, std::nullopt});
  return account;
}

TEST(MemorySentencesTest, SaysOfAQuietRunOnlyWhatFilledIt) {
  EXPECT_THAT(MemorySentences(Quiet()),
              ElementsAre(HasSubstr("19 GB were in use at most, 53 % of it asked for by train.py:42")));
  EXPECT_TRUE(MemoryLimits(Quiet()).empty());
}

TEST(MemorySentencesTest, NamesExpandableSegmentsWhereTheySave) {
  auto account = Quiet();
  account.what_if[0].replayed.peak_reserved = 15 * kGB;
  EXPECT_THAT(MemorySentences(account)[0], HasSubstr("would reserve 15 GB at most instead of 20 GB"));
  account.what_if[0].replayed.peak_reserved = 20 * kGB - kGB / 2;  // 2.5 %
  EXPECT_THAT(MemorySentences(account), Not(Contains(HasSubstr("expandable"))));
}

TEST(MemorySentencesTest, SaysWhyThereWasNoMemoryAndWhatWouldHaveFitted) {
  auto account = Quiet();
  account.refused.push_back(
      {account.peak.moment, 2 * kGB, kGB / 2, {3 * kGB, 211, kGB}, "train.py:40 in forward"});
  account.capacity = 20 * kGB;
  account.what_if[0].reserved_at_refusal = 18 * kGB;
  EXPECT_THAT(
      MemorySentences(account)[0],
      HasSubstr(
          "Out of memory: train.py:40 in forward asked for 2.0 GB, the device had 500 MB left, and of the "
          "20 GB that the allocator held 3.0 GB were free in 211 pieces, the largest of 1.0 GB."));
  EXPECT_THAT(MemorySentences(account)[0], HasSubstr("this request would have fitted: 18 GB"));
  account.what_if[0].reserved_at_refusal.reset();
  EXPECT_THAT(MemorySentences(account)[0], HasSubstr("would not have fitted either"));
  account.what_if.clear();
  EXPECT_THAT(MemorySentences(account)[0], Not(HasSubstr("expandable")));
}

TEST(MemorySentencesTest, SaysHowFarItCanBeBelieved) {
  auto account = Quiet();
  account.as_recorded->off = kGB / 100;
  EXPECT_THAT(MemoryLimits(account), ElementsAre(HasSubstr("differs from the record by up to 10 MB.")));
  account.as_recorded->off = kGB;
  EXPECT_THAT(MemoryLimits(account), ElementsAre(HasSubstr("nothing is said about other settings")));
  account.collects_garbage = true;
  EXPECT_THAT(MemoryLimits(account), ElementsAre(HasSubstr("garbage_collection_threshold is set")));
  account.events = 0;
  EXPECT_THAT(MemoryLimits(account), ElementsAre(HasSubstr("_record_memory_history()")));
}

TEST(MemoryTerminalTest, StaysWithinItsWidth) {
  const auto account = Quiet();
  const std::string text = MemoryToTerminal({&account, 1}, "snapshot.pickle", {60, false, false});
  EXPECT_THAT(text, HasSubstr("10 GB    50 %  train.py:42 in forward"));
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    EXPECT_LE(end - begin, 60u) << text.substr(begin, end - begin);
    begin = end + 1;
  }
}

TEST(MemoryJsonTest, LeavesOutWhatIsUnknown) {
  const auto account = Quiet();
  const auto json = MemoryToJson({&account, 1}, "snapshot.pickle");
  EXPECT_EQ(json["schema"], "fullbore.memory/1");
  const auto& device = json["devices"][0];
  EXPECT_FALSE(device.contains("capacity"));
  EXPECT_EQ(device["peak"]["time_us"], 2'310'000);
  EXPECT_EQ(device["what_if"][0]["change"], "expandable_segments");
  EXPECT_FALSE(device["what_if"][0].contains("fits"));
}

}  // namespace
}  // namespace fullbore::report
