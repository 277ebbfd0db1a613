#include "loader/core/source/remote/cache_chunk.h"

#define XXH_INLINE_ALL  // no library to link, and the fastest way for short inputs
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/guarded_file.h"

namespace fullbore::loader::remote {
namespace {

static_assert(std::endian::native == std::endian::little);

uint64_t Blocks(uint64_t data_bytes) { return (data_bytes + kCacheBlockBytes - 1) / kCacheBlockBytes; }

uint64_t TailHash(std::span<const uint64_t> hashes, const ChunkFooter& footer) {
  const uint64_t of_hashes = XXH3_64bits(hashes.data(), hashes.size_bytes());
  return XXH3_64bits_withSeed(&footer, offsetof(ChunkFooter, tail_hash), of_hashes);
}

Error Corrupt(const std::string& why) { return {ErrorCode::kCorrupt, "the cached chunk " + why, ""}; }

Result<void> ReadFully(int fd, uint64_t offset, std::span<uint8_t> out) {
  while (!out.empty()) {
    const ssize_t n = pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError("cannot read a cached chunk", errno);
    if (n == 0) return Corrupt("is truncated");
    out = out.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

}  // namespace

uint64_t ChunkFileBytes(uint64_t data_bytes) {
  return data_bytes + Blocks(data_bytes) * sizeof(uint64_t) + sizeof(ChunkFooter);
}

void ChunkTail::Add(std::span<const uint8_t> data) {
  data_bytes_ += data.size();
  while (!data.empty()) {
    const size_t part = std::min(data.size(), kCacheBlockBytes - block_.size());
    block_.insert(block_.end(), data.begin(), data.begin() + static_cast<ptrdiff_t>(part));
    data = data.subspan(part);
    if (block_.size() < kCacheBlockBytes) return;
    hashes_.push_back(XXH3_64bits(block_.data(), block_.size()));
    block_.clear();
  }
}

std::string ChunkTail::Finish(const ChunkKey& key) {
  if (!block_.empty()) hashes_.push_back(XXH3_64bits(block_.data(), block_.size()));
  ChunkFooter footer{};
  std::memcpy(footer.magic, kChunkMagic, sizeof footer.magic);
  FB_CHECK(key.size() == sizeof footer.key);
  std::memcpy(footer.key, key.data(), sizeof footer.key);
  footer.data_bytes = data_bytes_;
  footer.block_bytes = kCacheBlockBytes;
  footer.tail_hash = TailHash(hashes_, footer);
  std::string tail(reinterpret_cast<const char*>(hashes_.data()), hashes_.size() * sizeof(uint64_t));
  tail.append(reinterpret_cast<const char*>(&footer), sizeof footer);
  return tail;
}

Result<std::vector<uint64_t>> ParseChunkTail(std::span<const uint8_t> tail, uint64_t file_bytes,
                                             uint64_t data_bytes, const ChunkKey& key) {
  const uint64_t blocks = Blocks(data_bytes);
  if (file_bytes != ChunkFileBytes(data_bytes) || tail.size() != file_bytes - data_bytes) {
    return Corrupt("has " + std::to_string(file_bytes) + " bytes instead of " +
                   std::to_string(ChunkFileBytes(data_bytes)));
  }
  ChunkFooter footer;
  std::memcpy(&footer, tail.data() + blocks * sizeof(uint64_t), sizeof footer);
  if (std::memcmp(footer.magic, kChunkMagic, sizeof footer.magic) != 0) return Corrupt("has no footer");
  if (footer.block_bytes != kCacheBlockBytes || footer.data_bytes != data_bytes)
    return Corrupt("has a different layout");
  if (key.size() != sizeof footer.key || std::memcmp(footer.key, key.data(), sizeof footer.key) != 0) {
    return Corrupt("belongs to another file");
  }
  std::vector<uint64_t> hashes(blocks);
  if (blocks > 0) std::memcpy(hashes.data(), tail.data(), blocks * sizeof(uint64_t));
  if (TailHash(hashes, footer) != footer.tail_hash) return Corrupt("has damaged checksums");
  return hashes;
}

ChunkFile::ChunkFile(UniqueFd fd, uint64_t data_bytes, std::vector<uint64_t> hashes)
    : fd_(std::move(fd)), data_bytes_(data_bytes), hashes_(std::move(hashes)), checked_(hashes_.size()) {}

Result<std::shared_ptr<ChunkFile>> ChunkFile::Open(const std::string& path, const ChunkKey& key,
                                                   uint64_t data_bytes) {
  auto fd = OpenRegularFile(path);
  if (!fd) return fd.error();
  struct stat status {};
  if (fstat(fd->get(), &status) != 0) return ErrnoError("cannot stat '" + path + "'", errno);
  const auto file_bytes = static_cast<uint64_t>(status.st_size);
  if (file_bytes != ChunkFileBytes(data_bytes)) return Corrupt("'" + path + "' has the wrong length");
  std::vector<uint8_t> tail(file_bytes - data_bytes);
  if (auto read = ReadFully(fd->get(), data_bytes, tail); !read) return read.error();
  auto hashes = ParseChunkTail(tail, file_bytes, data_bytes, key);
  if (!hashes) return hashes.error();
  // The time of last use, for eviction; another user's file keeps its time.
  (void)futimens(fd->get(), nullptr);
  return std::shared_ptr<ChunkFile>(new ChunkFile(std::move(*fd), data_bytes, std::move(*hashes)));
}

Result<void> ChunkFile::Read(uint64_t offset, std::span<uint8_t> out) {
  FB_CHECK(offset <= data_bytes_ && out.size() <= data_bytes_ - offset);
  while (!out.empty()) {
    // Blocks that were checked before are read in one go.
    const uint64_t block = offset / kCacheBlockBytes;
    uint64_t end = block;
    while (end < checked_.size() && checked_[end].load(std::memory_order_relaxed)) ++end;
    uint64_t part = std::min<uint64_t>(out.size(), (std::max(end, block + 1)) * kCacheBlockBytes - offset);
    const auto target = out.first(part);
    auto read = end > block ? ReadFully(fd_.get(), offset, target) : ReadChecked(block, offset, target);
    if (!read) return read.error();
    out = out.subspan(part);
    offset += part;
  }
  return {};
}

Result<void> ChunkFile::ReadChecked(uint64_t block, uint64_t offset, std::span<uint8_t> out) {
  const uint64_t begin = block * kCacheBlockBytes;
  const uint64_t bytes = std::min<uint64_t>(kCacheBlockBytes, data_bytes_ - begin);
  thread_local std::vector<uint8_t> whole(kCacheBlockBytes);
  const auto data = std::span(whole).first(bytes);
  if (auto read = ReadFully(fd_.get(), begin, data); !read) return read.error();
  if (XXH3_64bits(data.data(), data.size()) != hashes_[block]) return Corrupt("does not match its checksum");
  checked_[block].store(true, std::memory_order_relaxed);
  std::copy_n(data.begin() + static_cast<ptrdiff_t>(offset - begin), out.size(), out.begin());
  return {};
}

}  // namespace fullbore::loader::remote
