// A chunk of a remote file in the disk cache: one file,
// written once, renamed into place when it is complete.
//
//   data          as it came from the server
//   block hashes  64 bits (XXH3) for each 64 KiB of data, little-endian
//   footer        ChunkFooter
//
// The hashes are at the end because data is written as it arrives. Nothing is synced to disk: a chunk torn by
// a power failure fails its hashes and is fetched again, which costs less than an fsync for each of thousands
// of chunks. A block is checked when a process first reads it, so that a sample of 100 KB does not cost the
// hash of 8 MB.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace fullbore::loader::remote {

inline constexpr uint32_t kCacheBlockBytes = 64 * 1024;

struct ChunkFooter {  // as on disk, on the little-endian machines that we support
  char magic[8];      // kChunkMagic
  uint8_t key[32];    // SHA-256 of what identifies the chunk
  uint64_t data_bytes;
  uint64_t block_bytes;
  uint64_t tail_hash;  // XXH3 of the block hashes and the fields above
};
static_assert(sizeof(ChunkFooter) == 64);
inline constexpr char kChunkMagic[8] = {'F', 'B', 'C', 'H', 'U', 'N', 'K', '1'};

using ChunkKey = std::string;  // 32 bytes

uint64_t ChunkFileBytes(uint64_t data_bytes);  // with hashes and footer

// Computes what follows the data, for data that arrives in pieces.
class ChunkTail {
 public:
  void Add(std::span<const uint8_t> data);
  std::string Finish(const ChunkKey& key);

 private:
  std::vector<uint8_t> block_;
  std::vector<uint64_t> hashes_;
  uint64_t data_bytes_ = 0;
};

// The block hashes, if `tail` is the tail of a complete chunk file of `file_bytes` bytes for `key`.
Result<std::vector<uint64_t>> ParseChunkTail(std::span<const uint8_t> tail, uint64_t file_bytes,
                                             uint64_t data_bytes, const ChunkKey& key);

// An open chunk. Each block is checked at its first use. Stays readable if it is evicted meanwhile.
// Thread-safe.
class ChunkFile {
 public:
  // kNotFound; kCorrupt if the file is not what it should be: remove it.
  static Result<std::shared_ptr<ChunkFile>> Open(const std::string& path, const ChunkKey& key,
                                                 uint64_t data_bytes);
  Result<void> Read(uint64_t offset, std::span<uint8_t> out);

 private:
  ChunkFile(UniqueFd fd, uint64_t data_bytes, std::vector<uint64_t> hashes);
  Result<void> ReadChecked(uint64_t block, uint64_t offset, std::span<uint8_t> out);

  const UniqueFd fd_;
  const uint64_t data_bytes_;
  const std::vector<uint64_t> hashes_;
  std::vector<std::atomic<bool>> checked_;
};

}  // namespace fullbore::loader::remote
