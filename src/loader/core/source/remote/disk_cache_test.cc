#include "loader/core/source/remote/disk_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

namespace fullbore::loader::remote {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kChunk = 100'000;
const StoredFile kFile{"http://host/data.tar", 2'050'000, "\"v1\""};

uint8_t ByteAt(uint64_t offset) { return static_cast<uint8_t>(offset * 31 + offset / 977); }

class DiskCacheTest : public testing::Test {
 protected:
  DiskCacheTest() { fs::remove_all(directory_); }
  ~DiskCacheTest() override { fs::remove_all(directory_); }

  DiskCacheOptions Options() {
    return {.directory = directory_,
            .limit_bytes = 10'000'000,
            .chunk_bytes = kChunk,
            .patience_s = 20,
            .write = {}};
  }

  // What the server gives, in pieces.
  DiskCache::Fetch Server() {
    return [this](uint64_t offset, uint64_t bytes, const DiskCache::Sink& sink) -> Result<void> {
      ++fetches_;
      if (fetch_fails_) return Error{ErrorCode::kUnavailable, "the server is gone", ""};
      std::vector<uint8_t> piece;
      for (uint64_t at = offset; at < offset + bytes; at += piece.size()) {
        piece.resize(std::min<uint64_t>(30'000, offset + bytes - at));
        for (size_t i = 0; i < piece.size(); ++i) piece[i] = ByteAt(at + i);
        if (!sink(piece)) return {};
      }
      return {};
    };
  }

  // True: from the cache, and right.
  bool Cached(DiskCache& cache, uint64_t offset, size_t bytes = 100, const StoredFile& file = kFile) {
    std::vector<uint8_t> out(bytes);
    const auto read = cache.Read(file.path, file, offset, out, Server(), Cancellation::Token(cancellation_));
    EXPECT_TRUE(read) << read.error().text;
    if (!read || !*read) return false;
    for (size_t i = 0; i < bytes; ++i) {
      if (out[i] != ByteAt(offset + i)) ADD_FAILURE() << "wrong byte at " << offset + i;
    }
    return true;
  }

  std::vector<std::string> Messages() {
    std::vector<std::string> texts;
    for (const auto& message : log_.Take()) texts.push_back(message.text);
    return texts;
  }

  // Chunks and parts.
  std::vector<fs::path> Files() {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
      if (entry.is_regular_file() && entry.path().parent_path().filename().string().size() == 2) {
        files.push_back(entry.path());
      }
    }
    return files;
  }
  uint64_t UsedBytes() {
    uint64_t bytes = 0;
    for (const auto& file : Files()) bytes += fs::file_size(file);
    return bytes;
  }
  size_t Parts() {
    size_t parts = 0;
    for (const auto& file : Files()) parts += file.extension() == CacheSpace::kPartSuffix;
    return parts;
  }

  const std::string directory_ = testing::TempDir() + "/disk_cache_test_" + std::to_string(getpid());
  MessageLog log_;
  Cancellation cancellation_;
  std::atomic<int> fetches_{0};
  bool fetch_fails_ = false;
};

TEST_F(DiskCacheTest, FetchesAChunkOnceAndServesItsNeighbours) {
  DiskCache cache(Options(), log_);
  for (uint64_t offset = 0; offset < kChunk; offset += 1000) EXPECT_TRUE(Cached(cache, offset, 1000));
  EXPECT_EQ(fetches_, 1);
  EXPECT_TRUE(Cached(cache, kFile.bytes - 100));  // the last one is shorter
  EXPECT_EQ(fetches_, 2);
  EXPECT_TRUE(Messages().empty());
}

TEST_F(DiskCacheTest, AnotherProcessFindsItThere) {
  { EXPECT_TRUE(Cached(*std::make_unique<DiskCache>(Options(), log_), 5)); }
  DiskCache second(Options(), log_);
  EXPECT_TRUE(Cached(second, 500));
  EXPECT_EQ(fetches_, 1);
}

TEST_F(DiskCacheTest, AnotherVersionOrLengthOrServerIsAnotherFile) {
  DiskCache cache(Options(), log_);
  auto other = kFile;
  EXPECT_TRUE(Cached(cache, 0));
  other.version = "\"v2\"";
  EXPECT_TRUE(Cached(cache, 0, 100, other));
  other = kFile;
  other.bytes += 1;
  EXPECT_TRUE(Cached(cache, 0, 100, other));
  other = kFile;
  other.path = "http://elsewhere/data.tar";
  EXPECT_TRUE(Cached(cache, 0, 100, other));
  EXPECT_EQ(fetches_, 4);
}

TEST_F(DiskCacheTest, ThreadsThatWantOneChunkFetchItOnce) {
  DiskCache cache(Options(), log_);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 8; ++i) threads.emplace_back([&, i] { EXPECT_TRUE(Cached(cache, i * 1000)); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(fetches_, 1);
}

TEST_F(DiskCacheTest, AThreadThatWouldWaitForAChunkFetchesTheNextOne) {
  DiskCache cache(Options(), log_);
  EXPECT_TRUE(Cached(cache, 0));
  std::promise<void> first_begun, next_begun;
  const auto fetch = [&](uint64_t offset, uint64_t bytes, const DiskCache::Sink& sink) {
    if (offset == kChunk) {
      first_begun.set_value();
      EXPECT_EQ(next_begun.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
    } else {
      EXPECT_EQ(offset, 2 * kChunk);
      next_begun.set_value();
    }
    return Server()(offset, bytes, sink);
  };
  const auto read = [&] {
    std::vector<uint8_t> out(10);
    const auto got = cache.Read(kFile.path, kFile, kChunk, out, fetch, Cancellation::Token(cancellation_));
    EXPECT_TRUE(got && *got);
    EXPECT_EQ(out[3], ByteAt(kChunk + 3));
  };
  std::thread first(read);
  first_begun.get_future().wait();
  read();
  first.join();
}

TEST_F(DiskCacheTest, ProcessesThatWantOneChunkFetchItOnce) {
  const std::string tally = directory_ + ".tally";
  fs::remove(tally);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    DiskCache cache(Options(), log_);
    const auto fetch = [&](uint64_t offset, uint64_t bytes, const DiskCache::Sink& sink) {
      std::ofstream(tally, std::ios::app) << "x";
      usleep(50'000);  // the others arrive meanwhile
      return Server()(offset, bytes, sink);
    };
    std::vector<uint8_t> out(100);
    const auto read = cache.Read(kFile.path, kFile, 0, out, fetch, Cancellation::Token(cancellation_));
    _exit(read && *read && out[7] == ByteAt(7) ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(fs::file_size(tally), 1u);
  fs::remove(tally);
}

TEST_F(DiskCacheTest, EvictsWhatWasUsedTheLongestAgo) {
  auto options = Options();
  options.limit_bytes = 10 * ChunkFileBytes(kChunk);
  for (uint64_t i = 0; i < 10; ++i) {
    DiskCache cache(options, log_);
    EXPECT_TRUE(Cached(cache, i * kChunk));
    usleep(10'000);  // file times are as fine as the kernel's tick
    EXPECT_TRUE(Cached(*std::make_unique<DiskCache>(options, log_), 0));  // the first one stays in use
  }
  DiskCache cache(options, log_);
  EXPECT_TRUE(Cached(cache, 10 * kChunk));
  EXPECT_LE(UsedBytes(), options.limit_bytes);
  fetches_ = 0;
  EXPECT_TRUE(Cached(cache, 0));
  EXPECT_TRUE(Cached(cache, 9 * kChunk));
  EXPECT_EQ(fetches_, 0);
  EXPECT_TRUE(Cached(cache, 1 * kChunk));
  EXPECT_EQ(fetches_, 1);
}

TEST_F(DiskCacheTest, WhatIsReadStaysReadableWhenItIsEvicted) {
  DiskCache cache(Options(), log_);
  EXPECT_TRUE(Cached(cache, 0));
  for (const auto& file : Files()) fs::remove(file);
  EXPECT_TRUE(Cached(cache, 50'000));
  EXPECT_EQ(fetches_, 1);
}

TEST_F(DiskCacheTest, KeepsItsLimitWhileSeveralThreadsWrite) {
  auto options = Options();
  options.limit_bytes = 5 * ChunkFileBytes(kChunk) + 100;
  DiskCache cache(options, log_);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (uint64_t chunk = i; chunk < 20; chunk += 2) (void)Cached(cache, chunk * kChunk);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LE(UsedBytes(), options.limit_bytes);
  EXPECT_TRUE(Messages().empty());
}

TEST_F(DiskCacheTest, AFullDiskSwitchesItOffWithOneMessage) {
  auto options = Options();
  uint64_t room = 3 * kChunk / 2;
  options.write = [&room](int fd, const void* data, size_t bytes, off_t offset) -> ssize_t {
    if (room == 0) return errno = ENOSPC, -1;
    bytes = std::min<uint64_t>(bytes, room);
    room -= bytes;
    return pwrite(fd, data, bytes, offset);
  };
  DiskCache cache(options, log_);
  EXPECT_TRUE(Cached(cache, 0));
  for (uint64_t chunk = 1; chunk < 5; ++chunk) EXPECT_FALSE(Cached(cache, chunk * kChunk));
  EXPECT_EQ(fetches_, 2);  // once, to find out
  EXPECT_TRUE(Cached(cache, 50));
  EXPECT_TRUE(Cached(*std::make_unique<DiskCache>(options, log_), 50));  // what is there stays in use
  EXPECT_THAT(Messages(), ElementsAre(HasSubstr("No space left on device")));
  EXPECT_EQ(Parts(), 0u);
}

TEST_F(DiskCacheTest, AnUnusableDirectorySwitchesItOffWithOneMessage) {
  std::ofstream(directory_) << "a file";
  auto options = Options();
  options.directory += "/cache";
  DiskCache cache(options, log_);
  EXPECT_FALSE(Cached(cache, 0));
  EXPECT_FALSE(Cached(cache, kChunk));
  EXPECT_EQ(fetches_, 0);
  EXPECT_THAT(Messages(), ElementsAre(HasSubstr(directory_)));
}

TEST_F(DiskCacheTest, AnotherUsersDirectorySwitchesItOffWithOneMessage) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  { EXPECT_TRUE(Cached(*std::make_unique<DiskCache>(Options(), log_), 0)); }
  for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
    fs::permissions(entry, fs::perms::owner_read | fs::perms::owner_exec);
  }
  DiskCache cache(Options(), log_);
  EXPECT_TRUE(Cached(cache, 0));
  EXPECT_FALSE(Cached(cache, kChunk));
  EXPECT_FALSE(Cached(cache, 2 * kChunk));
  EXPECT_THAT(Messages(), ElementsAre(HasSubstr("Permission denied")));
  fs::permissions(directory_ + "/chunks-1", fs::perms::owner_all);
  for (const auto& entry : fs::recursive_directory_iterator(directory_))
    fs::permissions(entry, fs::perms::owner_all);
}

// In a cache that several may write to, each of its names can be a trap.
TEST_F(DiskCacheTest, NeitherFollowsLinksNorWaitsForFifos) {
  { EXPECT_TRUE(Cached(*std::make_unique<DiskCache>(Options(), log_), 0)); }
  const fs::path chunk = Files().at(0), root = directory_ + "/chunks-1";
  const std::string victim = directory_ + "/victim";
  std::ofstream(victim) << "precious";
  fs::remove(chunk);
  fs::create_symlink(victim, chunk);
  fs::create_symlink(victim, chunk.string() + CacheSpace::kPartSuffix);
  EXPECT_TRUE(Cached(*std::make_unique<DiskCache>(Options(), log_), 0));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(chunk)));
  fs::remove(chunk);
  ASSERT_EQ(mkfifo(chunk.c_str(), 0600), 0);
  EXPECT_TRUE(Cached(*std::make_unique<DiskCache>(Options(), log_), 0));
  EXPECT_TRUE(Messages().empty());
  for (const char* name : {"usage", "lock"}) {
    fs::remove(root / name);
    fs::create_symlink(victim, root / name);
    EXPECT_FALSE(Cached(*std::make_unique<DiskCache>(Options(), log_), kChunk)) << name;
    fs::remove(root / name);
  }
  EXPECT_THAT(Messages(), ElementsAre(HasSubstr("symbolic link")));
  EXPECT_EQ(fs::file_size(victim), 8u);
}

TEST_F(DiskCacheTest, ReadsNothingThatAnotherUserPlanted) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: cannot act as another user";
  fs::create_directory(directory_);
  ASSERT_EQ(chmod(directory_.c_str(), 01777), 0);
  auto options = Options();
  options.directory += "/cache";
  { EXPECT_TRUE(Cached(*std::make_unique<DiskCache>(options, log_), 0)); }
  ASSERT_EQ(chown(options.directory.c_str(), 1001, 1001), 0);
  EXPECT_FALSE(Cached(*std::make_unique<DiskCache>(options, log_), 0));
  EXPECT_THAT(Messages(), ElementsAre(HasSubstr("belongs to another user")));
  ASSERT_EQ(chmod(directory_.c_str(), 0700), 0);
  EXPECT_TRUE(Cached(*std::make_unique<DiskCache>(options, log_), 0)) << "shared on purpose";
}

TEST_F(DiskCacheTest, ReportsALimitBelowAChunk) {
  auto options = Options();
  options.limit_bytes = 1000;
  DiskCache cache(options, log_);
  EXPECT_FALSE(Cached(cache, 0));
  EXPECT_THAT(Messages(), ElementsAre(HasSubstr("raise cache_bytes")));
}

TEST_F(DiskCacheTest, ADamagedChunkIsFetchedAgain) {
  { EXPECT_TRUE(Cached(*std::make_unique<DiskCache>(Options(), log_), 0)); }
  {
    std::fstream file(Files().at(0), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(10);
    file.put('?').put('!');
  }
  DiskCache cache(Options(), log_);
  EXPECT_TRUE(Cached(cache, 0));
  EXPECT_EQ(fetches_, 2);
  fs::resize_file(Files().at(0), 10);
  EXPECT_TRUE(Cached(*std::make_unique<DiskCache>(Options(), log_), 0));
  EXPECT_EQ(fetches_, 3);
}

TEST_F(DiskCacheTest, AServersErrorComesThroughAndLeavesNothing) {
  DiskCache cache(Options(), log_);
  fetch_fails_ = true;
  std::vector<uint8_t> out(10);
  const auto read = cache.Read(kFile.path, kFile, 0, out, Server(), Cancellation::Token(cancellation_));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().text, "the server is gone");
  EXPECT_TRUE(Files().empty());
  fetch_fails_ = false;
  EXPECT_TRUE(Cached(cache, 0));
  EXPECT_TRUE(Messages().empty());
}

// A process that holds a chunk's lock and brings nothing:
// another one does not wait for ever, nor after Cancel.
TEST_F(DiskCacheTest, AStuckWriterDelaysNobody) {
  DiskCache stuck(Options(), log_);
  std::promise<void> began, release;
  std::thread writer([&] {
    std::vector<uint8_t> out(10);
    const auto fetch = [&](uint64_t offset, uint64_t bytes, const DiskCache::Sink& sink) {
      began.set_value();
      release.get_future().wait();
      return Server()(offset, bytes, sink);
    };
    EXPECT_TRUE(stuck.Read(kFile.path, kFile, 0, out, fetch, Cancellation::Token(cancellation_)));
  });
  began.get_future().wait();
  auto options = Options();
  options.patience_s = 0.05;
  DiskCache impatient(options, log_);
  EXPECT_FALSE(Cached(impatient, 0));

  DiskCache patient(Options(), log_);
  std::thread waiter([&] { EXPECT_FALSE(Cached(patient, 0)); });
  std::thread second([&] { (void)Cached(patient, 0); });
  usleep(30'000);
  cancellation_.Cancel();
  patient.Wake();
  waiter.join();
  second.join();
  release.set_value();
  writer.join();
  EXPECT_TRUE(Cached(patient, 0));
}

TEST_F(DiskCacheTest, KilledWritersLeaveItUsable) {
  auto options = Options();
  options.limit_bytes = 8 * ChunkFileBytes(kChunk);
  for (int round = 0; round < 40; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      DiskCache cache(options, log_);
      for (uint64_t chunk = static_cast<uint64_t>(round);; ++chunk) {
        (void)Cached(cache, chunk % 20 * kChunk);
      }
    }
    usleep(static_cast<useconds_t>(500 + round * 977 % 10'000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  DiskCache cache(options, log_);
  for (uint64_t chunk = 0; chunk < 20; ++chunk) EXPECT_TRUE(Cached(cache, chunk * kChunk, kChunk));
  EXPECT_EQ(Parts(), 0u);
  EXPECT_LE(UsedBytes(), options.limit_bytes);
  EXPECT_TRUE(Messages().empty());
}

}  // namespace
}  // namespace fullbore::loader::remote
