// The blocks of a tar file: ustar, GNU long names, pax paths and sizes, base-256 sizes.
//
// We read it ourselves, although libarchive reads the traces in an archive (explain/ingest/archive_reader.h): of a shard,
// many threads at once read members at the offsets that the index gives, over HTTP too, and libarchive reads an archive
// from its beginning only. What stands here runs for every sample.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "loader/core/source/part_reader.h"

namespace fullbore::loader {

inline constexpr size_t kTarBlock = 512;
inline constexpr uint64_t TarPadded(uint64_t bytes) {
  return (bytes + kTarBlock - 1) / kTarBlock * kTarBlock;
}

struct TarMember {
  std::string name;
  uint64_t header = 0;  // offset of its last header block: the data follows immediately
  uint64_t bytes = 0;
  uint32_t header_crc = 0;  // of that block: shows later whether the member is still there
};

// The regular files of an archive, in order.
class TarScanner {
 public:
  TarScanner(Store& store, const StoredFile& file) : reader_(store, file) {}

  // Empty at the end. kCorrupt, naming the byte: a header is damaged or a member truncated; those before it
  // are complete. kUnsupported: a sparse member.
  Result<std::optional<TarMember>> Next();

  bool ended_with_marker() const { return ended_with_marker_; }

 private:
  struct Extended {  // what the headers before a member's own say about it
    std::optional<std::string> name;
    std::optional<uint64_t> bytes;
  };
  Result<void> ReadExtended(char type, uint64_t bytes, Extended& extended);

  PartReader reader_;
  uint64_t at_ = 0;
  bool ended_with_marker_ = false;
};

// A header block of a regular file: owner 0, time 0, so that the same files give the same archive.
// Only within these limits, which are those of a plain header.
inline constexpr size_t kMaxTarNameBytes = 100;
inline constexpr uint64_t kMaxTarMemberBytes = (uint64_t{1} << 33) - 1;
std::array<uint8_t, kTarBlock> MakeTarHeader(std::string_view name, uint64_t bytes);

}  // namespace fullbore::loader
