#include "base/crc32c.h"

#include <array>
#include <cstring>

namespace fullbore {

namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected
using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b]: the effect of byte b on the CRC with k zero
// bytes after it, so that eight bytes are processed at once.
constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (uint32_t byte = 0; byte < 256; ++byte) {
    for (size_t k = 1; k < 8; ++k)
      tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 0xff];
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

uint32_t ByTable(uint32_t crc, const uint8_t* at, size_t left) {
  for (; left >= 8; at += 8, left -= 8) {
    const uint32_t low = crc ^ (at[0] | at[1] << 8 | at[2] << 16 | static_cast<uint32_t>(at[3]) << 24);
    crc = kTables[7][low & 0xff] ^ kTables[6][low >> 8 & 0xff] ^ kTables[5][low >> 16 & 0xff] ^
          kTables[4][low >> 24] ^ kTables[3][at[4]] ^ kTables[2][at[5]] ^ kTables[1][at[6]] ^
          kTables[0][at[7]];
  }
  for (; left > 0; ++at, --left) crc = (crc >> 8) ^ kTables[0][(crc ^ *at) & 0xff];
  return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) uint32_t ByInstruction(uint32_t crc, const uint8_t* at, size_t left) {
  uint64_t wide = crc;
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, at, sizeof word);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  crc = static_cast<uint32_t>(wide);
  for (; left > 0; ++at, --left) crc = __builtin_ia32_crc32qi(crc, *at);
  return crc;
}
#endif

}  // namespace

uint32_t Crc32c(std::span<const uint8_t> bytes) {
#ifdef __x86_64__
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return ~ByInstruction(~0u, bytes.data(), bytes.size());
#endif
  return ~ByTable(~0u, bytes.data(), bytes.size());
}

}  // namespace fullbore
