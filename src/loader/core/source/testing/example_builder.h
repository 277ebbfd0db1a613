// Records of tf.train.Example, byte by byte.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/crc32c.h"

namespace fullbore::loader::testing {

inline std::string Varint(uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}

inline std::string Delimited(int number, std::string_view bytes) {
  return Varint(static_cast<uint64_t>(number) << 3 | 2) + Varint(bytes.size()) + std::string(bytes);
}

class ExampleBuilder {
 public:
  ExampleBuilder& Bytes(std::string_view name, std::string_view value) {
    return Add(name, 1, Delimited(1, value));
  }
  ExampleBuilder& Integers(std::string_view name, const std::vector<int64_t>& values, bool packed = true) {
    std::string list;
    for (const int64_t value : values)
      list += (packed ? "" : Varint(1 << 3)) + Varint(static_cast<uint64_t>(value));
    return Add(name, 3, packed ? Delimited(1, list) : list);
  }
  ExampleBuilder& Floats(std::string_view name, const std::vector<float>& values, bool packed = true) {
    std::string list;
    for (const float value : values) {
      if (!packed) list += Varint(1 << 3 | 5);
      list.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return Add(name, 2, packed ? Delimited(1, list) : list);
  }

  std::string Example() const { return Delimited(1, features_); }
  std::string Record() const { return RecordOf(Example()); }

  static std::string RecordOf(std::string_view data) {
    const uint64_t length = data.size();
    std::string record(reinterpret_cast<const char*>(&length), sizeof length);
    record += CrcOf(record);
    return record.append(data) + CrcOf(data);
  }

 private:
  ExampleBuilder& Add(std::string_view name, int kind, std::string_view list) {
    features_ += Delimited(1, Delimited(1, name) + Delimited(2, Delimited(kind, list)));
    return *this;
  }
  static std::string CrcOf(std::string_view bytes) {
    const uint32_t crc = MaskCrc(Crc32c({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
    return {reinterpret_cast<const char*>(&crc), sizeof crc};
  }

  std::string features_;
};

}  // namespace fullbore::loader::testing
