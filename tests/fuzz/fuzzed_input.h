// Choices that a target makes from its input, one after the other.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

namespace fullbore::fuzz {

inline constexpr std::array<int64_t, 16> kIntegers = {0,
                                                      1,
                                                      -1,
                                                      2,
                                                      7,
                                                      255,
                                                      1000,
                                                      1 << 16,
                                                      std::numeric_limits<int32_t>::max(),
                                                      std::numeric_limits<int32_t>::min(),
                                                      1'000'000'000,
                                                      int64_t{1} << 50,
                                                      int64_t{1} << 60,
                                                      int64_t{1} << 62,
                                                      std::numeric_limits<int64_t>::max(),
                                                      std::numeric_limits<int64_t>::min()};

// Consumes the input; past its end everything is 0.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  uint8_t Byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  size_t Below(size_t count) { return count == 0 ? 0 : (Byte() | size_t{Byte()} << 8) % count; }
  std::string Bytes(size_t count) {
    count = std::min(count, left_);
    std::string bytes(reinterpret_cast<const char*>(data_), count);
    data_ += count;
    left_ -= count;
    return bytes;
  }
  int64_t Integer() {
    const uint8_t choice = Byte();
    if (choice < 2 * kIntegers.size()) return kIntegers[choice % kIntegers.size()];
    if (choice < 128) return int64_t{choice} * kIntegers[Byte() % kIntegers.size() / 2];
    int64_t value = 0;
    const std::string bytes = Bytes(sizeof value);
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  double Real() {
    const int64_t bits = Integer();
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

}  // namespace fullbore::fuzz
