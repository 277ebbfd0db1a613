#include "loader/core/image/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "loader/core/image/byte_order.h"

namespace fullbore::loader {
namespace {

// The header is a Python dictionary in text: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kVersionEnd = 8;           // magic, major, minor
constexpr size_t kMaxHeaderBytes = 10'000;  // numpy.load's max_header_size
constexpr size_t kMaxDimensions = 64;       // NumPy's own limit (NPY_MAXDIMS)

Error Corrupt(std::string text) { return {ErrorCode::kCorrupt, std::move(text), ""}; }
Error Unsupported(std::string text) {
  return {ErrorCode::kUnsupported, std::move(text),
          "save it again as a contiguous array of plain numbers, for example: "
          "numpy.save(f, numpy.ascontiguousarray(a, dtype='<f4'))"};
}

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

// Reads the dictionary from left to right; every Take consumes what it read.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text), left_(text) {}
  Result<Header> Parse();

 private:
  void SkipBlanks() {
    while (!left_.empty() && (left_[0] == ' ' || left_[0] == '\n' || left_[0] == '\t'))
      left_.remove_prefix(1);
  }
  bool Take(std::string_view token) {
    SkipBlanks();
    if (!left_.starts_with(token)) return false;
    left_.remove_prefix(token.size());
    return true;
  }
  std::optional<std::string_view> TakeString();
  std::optional<bool> TakeBool();
  std::optional<std::vector<int64_t>> TakeShape();
  Result<void> TakeEntry(Header& header);
  Error Wrong(std::string_view expected) const {
    return Corrupt(fmt::format("the .npy header is damaged at its byte {}: {} expected",
                               text_.size() - left_.size(), expected));
  }

  std::string_view text_, left_;
};

std::optional<std::string_view> HeaderParser::TakeString() {
  SkipBlanks();
  if (left_.empty() || (left_[0] != '\'' && left_[0] != '"')) return std::nullopt;
  const size_t end = left_.find(left_[0], 1);
  if (end == std::string_view::npos) return std::nullopt;
  const auto string = left_.substr(1, end - 1);
  left_.remove_prefix(end + 1);
  return string;
}

std::optional<bool> HeaderParser::TakeBool() {
  if (Take("True")) return true;
  if (Take("False")) return false;
  return std::nullopt;
}

std::optional<std::vector<int64_t>> HeaderParser::TakeShape() {
  if (!Take("(")) return std::nullopt;
  std::vector<int64_t> shape;
  while (!Take(")")) {
    SkipBlanks();
    const size_t digits = std::min(left_.find_first_not_of("0123456789"), left_.size());
    const auto size = ParseInt(left_.substr(0, digits));
    if (digits == 0 || !size || shape.size() == kMaxDimensions) return std::nullopt;
    shape.push_back(*size);
    left_.remove_prefix(digits);
    (void)Take("L");  // Python 2's long integers
    if (!Take(",")) {
      if (!Take(")")) return std::nullopt;
      break;
    }
  }
  return shape;
}

Result<void> HeaderParser::TakeEntry(Header& header) {
  const auto key = TakeString();
  if (!key || !Take(":")) return Wrong("'key':");
  if (*key == "descr") {
    SkipBlanks();
    if (left_.starts_with("[")) return Unsupported("the .npy array holds records, not plain numbers");
    const auto descr = TakeString();
    if (!descr) return Wrong("the element type, as '<f4',");
    header.descr = std::string(*descr);
  } else if (*key == "fortran_order") {
    header.fortran_order = TakeBool();
    if (!header.fortran_order) return Wrong("True or False");
  } else if (*key == "shape") {
    header.shape = TakeShape();
    if (!header.shape) return Wrong("a shape of at most 64 sizes, as (2, 3),");
  } else {
    return Wrong("descr, fortran_order or shape");
  }
  return {};
}

Result<Header> HeaderParser::Parse() {
  Header header;
  if (!Take("{")) return Wrong("{");
  while (!Take("}")) {
    if (auto entry = TakeEntry(header); !entry) return entry.error();
    if (!Take(",")) {
      if (!Take("}")) return Wrong("}");
      break;
    }
  }
  SkipBlanks();
  if (!left_.empty()) return Wrong("the header's end");
  if (!header.descr || !header.fortran_order || !header.shape) {
    return Corrupt("the .npy header lacks descr, fortran_order or shape");
  }
  return header;
}

struct ElementType {
  std::string_view code;
  DType type;
};
constexpr ElementType kElements[] = {
    {"u1", DType::kUInt8},   {"i1", DType::kInt8},    {"b1", DType::kBool},  {"u2", DType::kUInt16},
    {"i2", DType::kInt16},   {"i4", DType::kInt32},   {"i8", DType::kInt64}, {"f2", DType::kFloat16},
    {"f4", DType::kFloat32}, {"f8", DType::kFloat64},
};

Result<DType> TypeOf(const std::string& descr) {
  const std::string_view code = std::string_view(descr).substr(std::min<size_t>(1, descr.size()));
  for (const ElementType& element : kElements) {
    if (code != element.code) continue;
    const char order = descr[0];
    if (order == '<' || order == '=' || order == '|' || BytesOf(element.type) == 1) return element.type;
    return Unsupported(fmt::format("the .npy array is big-endian ('{}')", descr));
  }
  if (code.starts_with("O"))
    return Unsupported("the .npy array holds Python objects, which are not supported");
  return Unsupported(fmt::format("the .npy array's element type '{}' is not supported", descr.substr(0, 40)));
}

// Empty if it does not fit in 63 bits.
std::optional<uint64_t> BytesOf(const std::vector<int64_t>& shape, DType type) {
  // A size of 0 makes the array empty, however large the others are.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  uint64_t bytes = BytesOf(type);
  for (const int64_t size : shape) {
    if (bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / static_cast<uint64_t>(size)) {
      return std::nullopt;
    }
    bytes *= static_cast<uint64_t>(size);
  }
  return bytes;
}

struct Parts {
  std::string_view header;
  size_t data = 0;  // offset
};

Result<Parts> Split(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic)) {
    return bytes.empty() ? Corrupt("the .npy file is empty (0 bytes)")
                         : Corrupt(fmt::format("not a .npy file: {} bytes that do not begin with \\x93NUMPY",
                                               bytes.size()));
  }
  const auto cut = [&] {
    return Corrupt(fmt::format("the .npy file ends at byte {}, within its header", bytes.size()));
  };
  if (bytes.size() < kVersionEnd) return cut();
  const int major = bytes[6];
  if (major < 1 || major > 3) {
    return Unsupported(fmt::format("the .npy file has version {}.{}; 1 to 3 are supported", major, bytes[7]));
  }
  const size_t start = kVersionEnd + (major == 1 ? 2 : 4);
  if (bytes.size() < start) return cut();
  const size_t length = major == 1 ? Little16(&bytes[kVersionEnd]) : Little32(&bytes[kVersionEnd]);
  if (length > kMaxHeaderBytes) {
    return Corrupt(
        fmt::format("the .npy header says it has {} bytes; at most {} are allowed", length, kMaxHeaderBytes));
  }
  if (length > bytes.size() - start) return cut();
  return Parts{text.substr(start, length), start + length};
}

}  // namespace

Result<NpyArray> ParseNpy(std::span<const uint8_t> bytes) {
  const auto parts = Split(bytes);
  if (!parts) return parts.error();
  auto header = HeaderParser(parts->header).Parse();
  if (!header) return header.error();
  const auto type = TypeOf(*header->descr);
  if (!type) return type.error();
  if (*header->fortran_order && header->shape->size() > 1) {
    return Unsupported("the .npy array is in Fortran order");
  }
  const auto needed = BytesOf(*header->shape, *type);
  const size_t there = bytes.size() - parts->data;
  if (!needed || *needed > there) {
    return Corrupt(
        fmt::format("the .npy file ends at byte {}: its shape needs {} bytes of data, but it has {}",
                    bytes.size(), needed ? std::to_string(*needed) : "more than 2^63", there));
  }
  NpyArray array;
  array.dtype = *type;
  array.shape = std::move(*header->shape);
  array.data = bytes.subspan(parts->data, *needed);
  return array;
}

}  // namespace fullbore::loader
