// A PNG file, as it is and with its checksums corrected: otherwise hardly any input would get past them.
#include <zlib.h>

#include <vector>

#include "fuzzed_image.h"
#include "loader/core/image/byte_order.h"

namespace {

void MakeChecksumsRight(std::vector<uint8_t>& png) {
  size_t at = 8;
  while (at <= png.size() && png.size() - at >= 12) {
    const size_t length = fullbore::loader::Big32(&png[at]);
    if (length > png.size() - at - 12) return;
    const auto sum = static_cast<uint32_t>(crc32_z(0, &png[at + 4], length + 4));
    for (size_t i = 0; i < 4; ++i) png[at + 8 + length + i] = static_cast<uint8_t>(sum >> (24 - 8 * i));
    at += 12 + length;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fullbore::fuzz::FuzzImage({data, size});
  std::vector<uint8_t> right(data, data + size);
  MakeChecksumsRight(right);
  fullbore::fuzz::FuzzImage(right);
  return 0;
}
