#include "loader/core/source/tar_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"
#include "loader/core/source/paths.h"
#include "loader/core/source/tar_format.h"

namespace fullbore::loader {

namespace {

constexpr std::string_view kMagic = "FBTARIX1";

// --- Grouping members into samples, as WebDataset does

struct SplitName {
  std::string_view key, extension;
};

// Empty if it is not part of a sample: hidden files, names without a dot, WebDataset's "__meta__" names.
std::optional<SplitName> Split(std::string_view name) {
  if (name.starts_with("./")) name.remove_prefix(2);
  const size_t base = name.rfind('/') + 1;
  const size_t dot = name.find('.', base);
  if (dot == std::string_view::npos || dot == base || dot + 1 == name.size()) return std::nullopt;
  if (name.starts_with("__") && name.ends_with("__")) return std::nullopt;
  return SplitName{name.substr(0, dot), name.substr(dot + 1)};
}

class Grouper {
 public:
  explicit Grouper(const TarSampleVisitor& visit) : visit_(visit) {}

  void Add(const TarMember& member) {
    const auto split = Split(member.name);
    if (!split) return;
    std::string extension = LowerCase(split->extension);
    // A second "jpg" of the same key is another sample: better one that lacks its label than a mixture.
    const bool again = std::find(extensions_.begin(), extensions_.end(), extension) != extensions_.end();
    if (split->key != key_ || again) Flush();
    key_ = split->key;
    extensions_.push_back(std::move(extension));
    parts_.push_back({{}, member.header, member.bytes, member.header_crc});
  }

  void Flush() {
    for (size_t i = 0; i < parts_.size(); ++i) parts_[i].extension = extensions_[i];
    if (!parts_.empty()) visit_({key_, parts_});
    parts_.clear();
    extensions_.clear();
  }

 private:
  const TarSampleVisitor& visit_;
  std::string key_;
  std::vector<std::string> extensions_;
  std::vector<TarPart> parts_;
};

// --- The index file

void PutVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

template <typename Number>
void PutNumber(std::string& out, Number value) {
  for (size_t i = 0; i < sizeof value; ++i) out += static_cast<char>(value >> (8 * i));
}

void PutText(std::string& out, std::string_view text) {
  PutVarint(out, text.size());
  out.append(text);
}

// Reads from the front of untrusted bytes. After a failure all reads return zeros.
class Cursor {
 public:
  explicit Cursor(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool failed() const { return failed_; }
  bool at_end() const { return at_ == bytes_.size(); }

  uint64_t Varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const uint64_t byte = Number<uint8_t>();
      if (shift == 63 && byte > 1) failed_ = true;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    failed_ = true;
    return 0;
  }

  template <typename Unsigned>
  Unsigned Number() {
    Unsigned value = 0;
    const auto from = Take(sizeof value);
    for (size_t i = 0; i < from.size(); ++i) value |= static_cast<Unsigned>(Unsigned{from[i]} << (8 * i));
    return value;
  }

  std::string_view Text(uint64_t length) {
    const auto from = Take(length);
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  std::string_view Text() { return Text(Varint()); }

 private:
  std::span<const uint8_t> Take(uint64_t length) {
    if (failed_ || length > bytes_.size() - at_) {
      failed_ = true;
      return {};
    }
    return bytes_.subspan(std::exchange(at_, at_ + length), length);
  }

  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

// The member's offset, from the distance to the end of the one before; false if it is outside the shard.
bool Locate(uint64_t distance, uint64_t shard_bytes, uint64_t& end, TarPart& part) {
  if (end > shard_bytes || distance > shard_bytes - end) return false;
  part.header = end + distance;
  if (shard_bytes - part.header < kTarBlock || part.bytes > shard_bytes - part.header - kTarBlock)
    return false;
  end = part.header + kTarBlock + part.bytes;
  return true;
}

// False if it is inconsistent. Runs twice: to check, then to visit.
bool WalkBody(Cursor body, uint64_t samples, uint64_t shard_bytes, const TarSampleVisitor* visit) {
  std::vector<TarPart> parts;
  uint64_t end = 0;
  for (uint64_t i = 0; i < samples; ++i) {
    const std::string_view key = body.Text();
    const uint64_t count = body.Varint();
    parts.clear();
    for (uint64_t member = 0; member < count && !body.failed(); ++member) {
      TarPart part;
      part.extension = body.Text();
      const uint64_t distance = body.Varint();
      part.bytes = body.Varint();
      part.header_crc = body.Number<uint32_t>();
      if (body.failed() || !Locate(distance, shard_bytes, end, part)) return false;
      parts.push_back(part);
    }
    if (body.failed()) return false;
    if (visit) (*visit)({key, parts});
  }
  return body.at_end();
}

}  // namespace

Result<TarScanResult> ScanTar(Store& store, const StoredFile& shard, const TarSampleVisitor& visit) {
  TarScanner scanner(store, shard);
  Grouper grouper(visit);
  TarScanResult result;
  while (true) {
    auto member = scanner.Next();
    if (!member) {
      const ErrorCode code = member.error().code;
      if (code != ErrorCode::kCorrupt) return member.error();
      result.damage = member.error();
      break;
    }
    if (!*member) break;
    grouper.Add(**member);
  }
  grouper.Flush();
  result.has_end = scanner.ended_with_marker();
  return result;
}

void TarIndexBuilder::Add(const TarSample& sample) {
  ++samples_;
  PutText(body_, sample.key);
  PutVarint(body_, sample.parts.size());
  for (const TarPart& part : sample.parts) {
    PutText(body_, part.extension);
    PutVarint(body_, part.header - end_);
    PutVarint(body_, part.bytes);
    PutNumber(body_, part.header_crc);
    end_ = part.header + kTarBlock + part.bytes;
  }
}

std::string TarIndexBuilder::Finish(uint64_t shard_bytes) const {
  std::string index(kMagic);
  PutNumber(index, shard_bytes);
  PutNumber(index, samples_);
  const auto* body = reinterpret_cast<const uint8_t*>(body_.data());
  PutNumber(index, Crc32c({body, body_.size()}));
  return index + body_;
}

Result<void> ReadTarIndex(std::span<const uint8_t> index, uint64_t shard_bytes,
                          const TarSampleVisitor& visit) {
  Cursor header(index);
  if (header.Text(kMagic.size()) != kMagic) {
    return Error{ErrorCode::kCorrupt, "it is not an index of this version", "pack the shards again"};
  }
  const auto stored_bytes = header.Number<uint64_t>();
  const auto samples = header.Number<uint64_t>();
  const auto crc = header.Number<uint32_t>();
  if (header.failed()) return Error{ErrorCode::kCorrupt, "its header is truncated", ""};
  if (stored_bytes != shard_bytes) {
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("it belongs to a shard of {} bytes, but this one has {}", stored_bytes, shard_bytes), ""};
  }
  constexpr size_t kHeaderBytes = 8 + 8 + 8 + 4;
  const std::span<const uint8_t> body = index.subspan(kHeaderBytes);
  if (Crc32c(body) != crc || !WalkBody(Cursor(body), samples, shard_bytes, nullptr))
    return Error{ErrorCode::kCorrupt, "it is damaged", ""};
  WalkBody(Cursor(body), samples, shard_bytes, &visit);
  return {};
}

}  // namespace fullbore::loader
