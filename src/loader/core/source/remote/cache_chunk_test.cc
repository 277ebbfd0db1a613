#include "loader/core/source/remote/cache_chunk.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace fullbore::loader::remote {
namespace {

const ChunkKey kKey(32, 'k');

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string SomeData(size_t bytes) {
  std::string data(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(i * 7 + i / 251);
  return data;
}

std::string TailOf(const std::string& data) {
  ChunkTail tail;
  const auto bytes = Bytes(data);
  for (size_t at = 0; at < bytes.size(); at += 1000)
    tail.Add(bytes.subspan(at, std::min<size_t>(1000, bytes.size() - at)));
  return tail.Finish(kKey);
}

class ChunkFileTest : public testing::Test {
 protected:
  ~ChunkFileTest() override { std::filesystem::remove(path_); }
  void Write(const std::string& bytes) { std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes; }
  const std::string path_ = testing::TempDir() + "/cache_chunk_test_" + std::to_string(getpid());
};

TEST_F(ChunkFileTest, GivesBackWhatWasWritten) {
  for (const size_t bytes : {size_t{1}, size_t{1000}, size_t{kCacheBlockBytes}, size_t{200'001}}) {
    const std::string data = SomeData(bytes);
    Write(data + TailOf(data));
    EXPECT_EQ(std::filesystem::file_size(path_), ChunkFileBytes(bytes));
    auto file = ChunkFile::Open(path_, kKey, bytes);
    ASSERT_TRUE(file) << file.error().text;
    for (int round = 0; round < 2; ++round) {  // the second time, all of it is checked
      std::vector<uint8_t> out(bytes);
      for (size_t at = 0; at < bytes; at += 30'000) {
        ASSERT_TRUE((*file)->Read(at, std::span(out).subspan(at, std::min<size_t>(30'000, bytes - at))));
      }
      EXPECT_EQ(std::string(out.begin(), out.end()), data);
    }
  }
}

TEST_F(ChunkFileTest, IsNotFoundIfMissing) {
  EXPECT_EQ(ChunkFile::Open(path_ + ".none", kKey, 10).error().code, ErrorCode::kNotFound);
}

TEST_F(ChunkFileTest, AnyTruncationIsCorrupt) {
  const std::string data = SomeData(30), whole = data + TailOf(data);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    Write(whole.substr(0, bytes));
    const auto file = ChunkFile::Open(path_, kKey, data.size());
    ASSERT_FALSE(file) << bytes;
    EXPECT_EQ(file.error().code, ErrorCode::kCorrupt);
  }
}

TEST_F(ChunkFileTest, DetectsAnyFlippedBit) {
  const std::string data = SomeData(30), whole = data + TailOf(data);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    Write(damaged);
    auto file = ChunkFile::Open(path_, kKey, data.size());
    std::vector<uint8_t> out(data.size());
    EXPECT_FALSE(file && (*file)->Read(0, out)) << at;
  }
}

TEST_F(ChunkFileTest, IgnoresTheChunkOfAnotherFile) {
  const std::string data = SomeData(300);
  Write(data + TailOf(data));
  EXPECT_EQ(ChunkFile::Open(path_, ChunkKey(32, 'x'), data.size()).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(ChunkFile::Open(path_, kKey, data.size() + 1).error().code, ErrorCode::kCorrupt);
}

TEST_F(ChunkFileTest, ADamagedBlockSpoilsNoOther) {
  const std::string data = SomeData(3 * kCacheBlockBytes);
  std::string damaged = data + TailOf(data);
  damaged[kCacheBlockBytes + 5] ^= 1;
  Write(damaged);
  auto file = ChunkFile::Open(path_, kKey, data.size());
  ASSERT_TRUE(file);
  std::vector<uint8_t> out(100);
  EXPECT_TRUE((*file)->Read(0, out));
  EXPECT_FALSE((*file)->Read(kCacheBlockBytes + 1000, out));
  EXPECT_FALSE((*file)->Read(kCacheBlockBytes - 50, out));
  EXPECT_TRUE((*file)->Read(2 * kCacheBlockBytes, out));
}

}  // namespace
}  // namespace fullbore::loader::remote
