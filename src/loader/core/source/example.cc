#include "loader/core/source/example.h"

#include <cstring>
#include <optional>

namespace fullbore::loader {

namespace {

using Bytes = std::span<const uint8_t>;

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

// The fields of a message, one after the other.
class Fields {
 public:
  explicit Fields(Bytes message) : left_(message) {}

  // False at the end or if the message is damaged.
  bool Next() {
    if (left_.empty() || failed_) return false;
    const uint64_t tag = TakeVarint();
    number_ = tag >> 3;
    type_ = static_cast<uint32_t>(tag & 7);
    bytes_ = {};
    switch (type_) {
      case kVarint:
        value_ = TakeVarint();
        break;
      case kFixed64:
        Take(8);
        break;
      case kFixed32:
        Take(4);
        break;
      case kLengthDelimited:
        Take(TakeVarint());
        break;
      default:  // groups, which proto3 does not have
        failed_ = true;
    }
    if (number_ == 0) failed_ = true;
    return !failed_;
  }

  bool failed() const { return failed_; }
  bool Is(uint64_t number, uint32_t type) const { return number_ == number && type_ == type; }
  uint64_t value() const { return value_; }
  Bytes bytes() const { return bytes_; }

 private:
  uint64_t TakeVarint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const uint64_t byte = left_[0];
      left_ = left_.subspan(1);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    failed_ = true;
    return 0;
  }

  void Take(uint64_t length) {
    if (failed_ || length > left_.size()) {
      failed_ = true;
      return;
    }
    bytes_ = left_.first(length);
    left_ = left_.subspan(length);
  }

  Bytes left_, bytes_;
  uint64_t number_ = 0, value_ = 0;
  uint32_t type_ = 0;
  bool failed_ = false;
};

// The number of varints in `packed`; empty if the last is incomplete or one is longer than ten bytes.
std::optional<uint64_t> CountVarints(Bytes packed) {
  uint64_t count = 0, length = 0;
  constexpr uint64_t kLongest = 10;
  for (const uint8_t byte : packed) {
    if (++length > kLongest) return std::nullopt;
    if (byte >= 0x80) continue;
    ++count;
    length = 0;
  }
  return length == 0 ? std::optional(count) : std::nullopt;
}

bool CountValues(FeatureKind kind, const Fields& list, Feature& feature) {
  if (kind == FeatureKind::kBytes && list.Is(1, kLengthDelimited)) {
    if (feature.count++ == 0) feature.bytes = list.bytes();
  } else if (kind == FeatureKind::kFloats && list.Is(1, kLengthDelimited)) {
    if (list.bytes().size() % sizeof(float) != 0) return false;
    feature.count += list.bytes().size() / sizeof(float);
  } else if (kind == FeatureKind::kIntegers && list.Is(1, kLengthDelimited)) {
    const auto count = CountVarints(list.bytes());
    if (!count) return false;
    feature.count += *count;
  } else if ((kind == FeatureKind::kFloats && list.Is(1, kFixed32)) ||
             (kind == FeatureKind::kIntegers && list.Is(1, kVarint))) {
    ++feature.count;
  }
  return true;
}

bool ParseFeature(Bytes message, Feature& feature) {
  constexpr FeatureKind kKinds[] = {FeatureKind::kNone, FeatureKind::kBytes, FeatureKind::kFloats,
                                    FeatureKind::kIntegers};
  Fields fields(message);
  while (fields.Next()) {
    size_t number = 0;
    for (size_t candidate = 1; candidate <= 3; ++candidate) {
      if (fields.Is(candidate, kLengthDelimited)) number = candidate;
    }
    if (number == 0) continue;
    feature = {kKinds[number], 0, {}, fields.bytes()};
    Fields list(fields.bytes());
    while (list.Next()) {
      if (!CountValues(feature.kind, list, feature)) return false;
    }
    if (list.failed()) return false;
  }
  return !fields.failed();
}

template <typename Visit>
void VisitIntegers(const Feature& feature, Visit visit) {
  Fields list(feature.list);
  while (list.Next()) {
    if (list.Is(1, kVarint)) visit(list.value());
    if (!list.Is(1, kLengthDelimited)) continue;
    uint64_t value = 0;
    unsigned shift = 0;
    for (const uint8_t byte : list.bytes()) {
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      shift += 7;
      if (byte >= 0x80) continue;
      visit(value);
      value = 0;
      shift = 0;
    }
  }
}

bool ParseEntry(Bytes message, const FeatureVisitor& visit) {
  std::string_view name;
  Feature feature;
  Fields entry(message);
  while (entry.Next()) {
    if (entry.Is(1, kLengthDelimited))
      name = {reinterpret_cast<const char*>(entry.bytes().data()), entry.bytes().size()};
    if (entry.Is(2, kLengthDelimited) && !ParseFeature(entry.bytes(), feature)) return false;
  }
  if (entry.failed()) return false;
  visit(name, feature);
  return true;
}

}  // namespace

bool ParseExample(std::span<const uint8_t> example, const FeatureVisitor& visit) {
  Fields outer(example);
  while (outer.Next()) {
    if (!outer.Is(1, kLengthDelimited)) continue;
    Fields features(outer.bytes());
    while (features.Next()) {
      if (features.Is(1, kLengthDelimited) && !ParseEntry(features.bytes(), visit)) return false;
    }
    if (features.failed()) return false;
  }
  return !outer.failed();
}

void CopyFloats(const Feature& feature, uint8_t* out) {
  Fields list(feature.list);
  while (list.Next()) {
    if (!list.Is(1, kLengthDelimited) && !list.Is(1, kFixed32)) continue;
    if (!list.bytes().empty()) std::memcpy(out, list.bytes().data(), list.bytes().size());
    out += list.bytes().size();
  }
}

void CopyIntegers(const Feature& feature, uint8_t* out) {
  VisitIntegers(feature, [&](uint64_t value) {
    std::memcpy(out, &value, sizeof value);
    out += sizeof value;
  });
}

int64_t FirstInteger(const Feature& feature) {
  std::optional<uint64_t> first;
  VisitIntegers(feature, [&](uint64_t value) {
    if (!first) first = value;
  });
  return static_cast<int64_t>(first.value_or(0));
}

}  // namespace fullbore::loader
