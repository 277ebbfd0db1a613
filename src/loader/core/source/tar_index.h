// The samples of a tar shard, and the index file that saves reading through the shard when it is opened.
//
// Index file, NAME.tar.idx beside NAME.tar; `fullbore loader pack` writes it. All numbers little-endian:
//
//   8 bytes   "FBTARIX1": the last character is the version
//   u64       size of the shard: an index of another size is not used
//   u64       number of samples
//   u32       CRC-32C of the body
//   body      for each sample, in the order of the shard: varint length and text of its key; varint number of
//             members; for each member: varint length and text of its extension, varint distance of its
//             header block from the end of the member before (for the first one: from the beginning),
//             varint size, u32 CRC-32C of the header block
//
// Varints are LEB128. The CRC of the header block is compared on each read, so that a shard that was repacked
// to the same size never yields a wrong sample, whatever index is beside it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loader/core/store.h"

namespace fullbore::loader {

struct TarPart {
  std::string_view extension;  // in lower case: "jpg", "seg.png"
  uint64_t header = 0;         // offset of the header block directly before the data
  uint64_t bytes = 0;
  uint32_t header_crc = 0;
};

struct TarSample {
  std::string_view key;  // "dir/0001" of "dir/0001.jpg" and "dir/0001.cls"
  std::span<const TarPart> parts;
};
using TarSampleVisitor = std::function<void(const TarSample& sample)>;

struct TarScanResult {
  std::optional<Error> damage;  // what ended the scan early; the samples before it were visited
  bool has_end = true;          // false: the end-of-archive marker is missing, so members may be missing, too
};
// Reads the headers of the whole shard. A sample ends where the next key begins. Only kUnavailable (the
// storage failed) and kUnsupported are errors.
Result<TarScanResult> ScanTar(Store& store, const StoredFile& shard, const TarSampleVisitor& visit);

class TarIndexBuilder {
 public:
  void Add(const TarSample& sample);
  std::string Finish(uint64_t shard_bytes) const;

 private:
  std::string body_;
  uint64_t samples_ = 0, end_ = 0;
};

// kCorrupt: not an index, damaged, or for a shard of a different size. Checks everything before visiting any.
Result<void> ReadTarIndex(std::span<const uint8_t> index, uint64_t shard_bytes,
                          const TarSampleVisitor& visit);

}  // namespace fullbore::loader
