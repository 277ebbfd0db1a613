#include "measure/collect/channel_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "base/testing/scratch_directory.h"

namespace fullbore::collect {
namespace {

using record::ChannelHeader;
using record::ChannelRecord;

// Writes a ring as a training process would, record by record.
class ChannelReaderTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kCapacity = 8;

  void SetUp() override {
    ChannelHeader header{};
    std::memcpy(header.magic, record::kChannelMagic, sizeof header.magic);
    header.header_bytes = record::kChannelHeaderBytes;
    header.record_bytes = record::kChannelRecordBytes;
    header.capacity = kCapacity;
    header.pid = 42;
    std::string bytes(record::kChannelHeaderBytes + kCapacity * record::kChannelRecordBytes, '\0');
    std::memcpy(bytes.data(), &header, sizeof header);
    std::ofstream(Ring(), std::ios::binary) << bytes;
  }

  std::string Ring() const { return directory_ / "42-7.ring"; }

  void Write(uint64_t sequence) {
    ChannelRecord event{};
    event.a = static_cast<int64_t>(sequence * 10);
    event.sequence = sequence;
    std::fstream file(Ring(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(
        static_cast<std::streamoff>(record::kChannelHeaderBytes + (sequence - 1) % kCapacity * sizeof event));
    file.write(reinterpret_cast<const char*>(&event), sizeof event);
  }
  void Say(const std::string& text) { std::ofstream(directory_ / "42-7.jsonl", std::ios::app) << text; }

  ScratchDirectory directory_;
};

TEST_F(ChannelReaderTest, SeesEachEventOnceAndInOrder) {
  auto channel = Channel::Open(Ring());
  ASSERT_TRUE(channel.ok());
  EXPECT_TRUE((*channel)->ReadEvents().empty());
  for (uint64_t n = 1; n <= 5; ++n) Write(n);
  EXPECT_EQ((*channel)->ReadEvents().size(), 5u);
  for (uint64_t n = 6; n <= 10; ++n) Write(n);  // around the end of the ring
  const auto events = (*channel)->ReadEvents();
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events.front().a, 60);
  EXPECT_EQ(events.back().a, 100);
  EXPECT_EQ((*channel)->lost_events(), 0u);
}

TEST_F(ChannelReaderTest, CountsEventsOverwrittenBeforeTheyWereRead) {
  auto channel = Channel::Open(Ring());
  ASSERT_TRUE(channel.ok());
  for (uint64_t n = 1; n <= 30; ++n) Write(n);
  const auto events = (*channel)->ReadEvents();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().sequence, 30u);
  EXPECT_EQ((*channel)->lost_events() + events.size(), 30u);
}

TEST_F(ChannelReaderTest, ReadsTextLineByLineAndSkipsWhatIsNotAnObject) {
  auto channel = Channel::Open(Ring());
  ASSERT_TRUE(channel.ok());
  EXPECT_TRUE((*channel)->ReadLines().empty());
  Say("{\"k\": \"hello\"}\nnot json\n[1]\n{\"k\": \"fa");
  ASSERT_EQ((*channel)->ReadLines().size(), 1u);
  Say("ct\"}\n");
  const auto rest = (*channel)->ReadLines();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0]["k"], "fact");
}

TEST_F(ChannelReaderTest, GarbageIsNotAChannel) {
  for (const size_t length : {size_t{0}, size_t{10}, size_t{5000}}) {
    const std::string path = directory_ / "1-1.ring";
    std::ofstream(path, std::ios::binary | std::ios::trunc) << std::string(length, 'x');
    EXPECT_FALSE(Channel::Open(path).ok());
  }
  EXPECT_FALSE(Channel::Open(directory_ / "missing.ring").ok());
}

TEST_F(ChannelReaderTest, ADirectoryReturnsEachNewChannelOnce) {
  ChannelDirectory channels(directory_.path());
  EXPECT_EQ(channels.Discover().size(), 1u);
  EXPECT_EQ(channels.Discover().size(), 0u);
  EXPECT_EQ(channels.channels().size(), 1u);
}

// A named pipe without a writer blocks whoever opens it, and a symbolic link may lead to one.
TEST_F(ChannelReaderTest, DoesNotWaitForAnythingButARegularFile) {
  const std::string pipe = directory_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_EQ(mkfifo((directory_ / "1-1.ring").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo((directory_ / "2-1.jsonl").c_str(), 0600), 0);
  ASSERT_EQ(symlink(pipe.c_str(), (directory_ / "3-1.ring").c_str()), 0);
  ASSERT_EQ(symlink("/dev/zero", (directory_ / "4-1.jsonl").c_str()), 0);
  ASSERT_EQ(mkfifo((directory_ / "42-7.jsonl").c_str(), 0600), 0);
  ChannelDirectory channels(directory_.path());
  const auto found = channels.Discover();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0]->ReadLines().empty());
  EXPECT_TRUE(channels.LinesWithoutRing().empty());
}

}  // namespace
}  // namespace fullbore::collect
