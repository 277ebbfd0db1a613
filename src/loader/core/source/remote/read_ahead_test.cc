#include "loader/core/source/remote/read_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace fullbore::loader::remote {
namespace {

const StoredFile kFile{"http://host/data.tar", 50'000'000, "v"};
constexpr uint64_t kSample = 100'000;

uint8_t ByteAt(uint64_t offset) { return static_cast<uint8_t>(offset ^ offset >> 9); }

class ReadAheadTest : public testing::Test {
 protected:
  Result<void> Read(uint64_t offset, size_t bytes = kSample, const StoredFile& file = kFile) {
    std::vector<uint8_t> out(bytes);
    const auto fetch = [&](uint64_t from, std::span<uint8_t> target) -> Result<void> {
      ++fetches_;
      fetched_bytes_ += target.size();
      if (from + target.size() > file.bytes) ADD_FAILURE() << "beyond the end";
      if (fails_) return Error{ErrorCode::kUnavailable, "gone", ""};
      for (size_t i = 0; i < target.size(); ++i) target[i] = ByteAt(from + i);
      return {};
    };
    auto read = ahead_.Read(file, offset, out, fetch, Cancellation::Token(cancellation_));
    for (size_t i = 0; read && i < bytes; ++i) {
      if (out[i] != ByteAt(offset + i)) {
        ADD_FAILURE() << "wrong byte at " << offset + i;
        break;
      }
    }
    return read;
  }

  ReadAhead ahead_;
  Cancellation cancellation_;
  std::atomic<int> fetches_{0};
  std::atomic<uint64_t> fetched_bytes_{0};
  bool fails_ = false;
};

TEST_F(ReadAheadTest, SequentialReadsShareRequests) {
  for (uint64_t offset = 0; offset < kFile.bytes; offset += kSample) EXPECT_TRUE(Read(offset));
  EXPECT_LE(fetches_, 15);  // 500 samples; 256 KiB twice as much each time up to 8 MiB
  EXPECT_LT(fetched_bytes_, kFile.bytes * 11 / 10);
}

TEST_F(ReadAheadTest, HeadersOfAnArchiveAreSequentialReads) {
  for (uint64_t offset = 0; offset < kFile.bytes; offset += kSample) EXPECT_TRUE(Read(offset, 512));
  EXPECT_LE(fetches_, 15);
}

TEST_F(ReadAheadTest, RandomReadsGetExactlyWhatTheyAskFor) {
  for (uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(Read(i * 37 % 100 * 499'000));
  EXPECT_EQ(fetches_, 100);
  EXPECT_EQ(fetched_bytes_, 100 * kSample);
}

TEST_F(ReadAheadTest, SeveralFilesAreReadAtTheSameTime) {
  for (uint64_t offset = 0; offset < kFile.bytes; offset += kSample) {
    for (const char* path : {"a", "b", "c"}) EXPECT_TRUE(Read(offset, kSample, {path, kFile.bytes, "v"}));
  }
  EXPECT_LE(fetches_, 45);
}

TEST_F(ReadAheadTest, ThreadsShareTheWindows) {
  std::atomic<uint64_t> next{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (uint64_t offset = next.fetch_add(kSample); offset < kFile.bytes;
           offset = next.fetch_add(kSample)) {
        EXPECT_TRUE(Read(offset));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LE(fetches_, 100);  // of 500: a thread may be late in any order, but not each time
}

TEST_F(ReadAheadTest, AFailedWindowIsForgotten) {
  EXPECT_TRUE(Read(0));
  fails_ = true;
  EXPECT_FALSE(Read(kSample));
  fails_ = false;
  EXPECT_TRUE(Read(kSample));
  EXPECT_TRUE(Read(2 * kSample));
}

}  // namespace
}  // namespace fullbore::loader::remote
