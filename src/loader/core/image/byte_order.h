// Integers out of files, whatever their alignment. The caller has checked that the bytes are there.
#pragma once

#include <cstdint>

namespace fullbore::loader {

inline uint16_t Little16(const uint8_t* p) { return static_cast<uint16_t>(p[0] | p[1] << 8); }
inline uint32_t Little24(const uint8_t* p) { return static_cast<uint32_t>(p[0] | p[1] << 8 | p[2] << 16); }
inline uint32_t Little32(const uint8_t* p) { return Little24(p) | static_cast<uint32_t>(p[3]) << 24; }
inline uint16_t Big16(const uint8_t* p) { return static_cast<uint16_t>(p[0] << 8 | p[1]); }
inline uint32_t Big32(const uint8_t* p) { return static_cast<uint32_t>(Big16(p)) << 16 | Big16(p + 2); }

}  // namespace fullbore::loader
