#include "loader/core/image/exif.h"

#include <algorithm>
#include <array>

#include "loader/core/image/byte_order.h"

namespace fullbore::loader {
namespace {

constexpr uint16_t kOrientationTag = 0x0112;
constexpr size_t kEntryBytes = 12;  // tag, type, count, value: of a TIFF directory
constexpr std::array<uint8_t, 6> kExifMark = {'E', 'x', 'i', 'f', 0, 0};

}  // namespace

int TiffOrientation(std::span<const uint8_t> tiff) {
  if (tiff.size() < 8) return 1;
  const bool little = tiff[0] == 'I' && tiff[1] == 'I';
  if (!little && !(tiff[0] == 'M' && tiff[1] == 'M')) return 1;
  const auto read16 = [&](size_t at) { return little ? Little16(&tiff[at]) : Big16(&tiff[at]); };
  const auto read32 = [&](size_t at) { return little ? Little32(&tiff[at]) : Big32(&tiff[at]); };
  const size_t directory = read32(4);
  if (read16(2) != 42 || directory > tiff.size() - 2) return 1;
  const size_t entries = std::min<size_t>(read16(directory), (tiff.size() - directory - 2) / kEntryBytes);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (read16(entry) != kOrientationTag) continue;
    const uint16_t type = read16(entry + 2);
    // The standard requires SHORT; LONG and BYTE also occur, and Pillow accepts them.
    const uint32_t value = type == 3   ? read16(entry + 8)
                           : type == 4 ? read32(entry + 8)
                           : type == 1 ? tiff[entry + 8]
                                       : 1;
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

int ExifOrientation(std::span<const uint8_t> segment) {
  if (segment.size() < kExifMark.size() || !std::equal(kExifMark.begin(), kExifMark.end(), segment.begin())) {
    return 0;
  }
  return TiffOrientation(segment.subspan(kExifMark.size()));
}

}  // namespace fullbore::loader
