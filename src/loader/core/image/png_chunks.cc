#include "loader/core/image/png_chunks.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "loader/core/image/byte_order.h"
#include "loader/core/image/exif.h"
#include "loader/core/image/pixels.h"

namespace fullbore::loader {
namespace {

constexpr size_t kMagicBytes = 8;
constexpr size_t kChunkOverhead = 12;  // length, type, then data, then the checksum
constexpr size_t kHeaderBytes = 13;    // of IHDR's data

struct Chunk {
  size_t offset = 0;
  std::string_view type;
  size_t length = 0;
  bool whole = false;
  std::span<const uint8_t> data;  // as far as it exists

  size_t end() const { return offset + kChunkOverhead + length; }
  bool critical() const { return (type[0] & 0x20) == 0; }  // the standard's bit: an upper-case letter
};

// Empty if not even a chunk's length and type are left.
std::optional<Chunk> ChunkAt(std::span<const uint8_t> png, size_t offset) {
  if (offset > png.size() || png.size() - offset < 8) return std::nullopt;
  const auto left = png.subspan(offset);
  Chunk chunk;
  chunk.offset = offset;
  chunk.length = Big32(left.data());
  chunk.type = {reinterpret_cast<const char*>(left.data()) + 4, 4};
  chunk.whole = left.size() >= kChunkOverhead && chunk.length <= left.size() - kChunkOverhead;
  chunk.data = left.subspan(8, std::min(chunk.length, left.size() - 8));
  return chunk;
}

// For messages: the bytes of a damaged type are arbitrary.
std::string NameOf(const Chunk& chunk) {
  const bool letters = std::all_of(chunk.type.begin(), chunk.type.end(),
                                   [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); });
  return letters ? fmt::format("chunk {} at byte {}", chunk.type, chunk.offset)
                 : fmt::format("chunk at byte {}", chunk.offset);
}

Result<void> CheckChunk(std::span<const uint8_t> png, const Chunk& chunk) {
  if (!chunk.whole) {
    return Corrupt(fmt::format("the PNG ends at byte {}, within its {}, which has {} bytes of data",
                               png.size(), NameOf(chunk), chunk.length));
  }
  const uint8_t* type = png.data() + chunk.offset + 4;
  const auto actual = static_cast<uint32_t>(crc32_z(0, type, chunk.length + 4));
  const uint32_t stored = Big32(type + 4 + chunk.length);
  if (actual == stored) return {};
  return Corrupt(
      fmt::format("the PNG's {} is damaged: its checksum is {:08x}, but that of its data is {:08x}",
                  NameOf(chunk), stored, actual));
}

}  // namespace

Result<PngHeader> ReadPngHeader(std::span<const uint8_t> png) {
  const auto header = ChunkAt(png, kMagicBytes);
  if (!header) return Corrupt(fmt::format("the PNG ends at byte {}, before its size", png.size()));
  if (header->type != "IHDR" || header->length != kHeaderBytes) {
    return Corrupt(fmt::format("the PNG does not begin with its header: {}", NameOf(*header)));
  }
  if (auto checked = CheckChunk(png, *header); !checked) return checked.error();
  PngHeader result;
  result.width = Big32(header->data.data());
  result.height = Big32(header->data.data() + 4);
  for (auto chunk = header; chunk && chunk->whole && chunk->type != "IEND";
       chunk = ChunkAt(png, chunk->end())) {
    if (chunk->type == "eXIf") result.orientation = TiffOrientation(chunk->data);
  }
  return result;
}

Result<void> CheckPngChunks(std::span<const uint8_t> png) {
  bool in_data = false;
  for (auto chunk = ChunkAt(png, kMagicBytes); chunk; chunk = ChunkAt(png, chunk->end())) {
    const bool is_data = chunk->type == "IDAT";
    if (in_data && !is_data) return {};
    in_data = is_data;
    if (!chunk->critical()) {
      if (!chunk->whole) return CheckChunk(png, *chunk);
      continue;
    }
    if (auto checked = CheckChunk(png, *chunk); !checked) return checked;
  }
  if (in_data) return {};
  return Corrupt(fmt::format("the PNG ends at byte {}, before its image data", png.size()));
}

}  // namespace fullbore::loader
