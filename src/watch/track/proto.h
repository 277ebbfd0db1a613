// Protocol buffers, written by hand: the few messages that TensorBoard reads. A message is the text of its fields.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace fullbore::watch::proto {

inline std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

template <typename Number>
std::string LittleEndian(Number number) {
  std::string bytes;
  for (size_t i = 0; i < sizeof number; ++i) bytes += static_cast<char>(number >> (8 * i));
  return bytes;
}

// The kind of a field, in the three low bits of its key.
enum Wire : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
inline std::string Key(uint64_t field, Wire wire) { return Varint(field << 3 | wire); }

inline std::string Integer(uint64_t field, int64_t value) {
  return Key(field, kVarint) + Varint(static_cast<uint64_t>(value));
}
inline std::string Double(uint64_t field, double value) {
  return Key(field, kFixed64) + LittleEndian(std::bit_cast<uint64_t>(value));
}
inline std::string Float(uint64_t field, float value) {
  return Key(field, kFixed32) + LittleEndian(std::bit_cast<uint32_t>(value));
}
// A text, bytes, or a message.
inline std::string Bytes(uint64_t field, std::string_view bytes) {
  return Key(field, kBytes) + Varint(bytes.size()) + std::string(bytes);
}

}  // namespace fullbore::watch::proto
