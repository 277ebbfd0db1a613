#include "loader/core/source/tar_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/crc32c.h"
#include "base/text.h"

namespace fullbore::loader {

namespace {

// Where the fields of a header are (POSIX.1-1988 ustar).
struct Place {
  size_t offset, length;
};
constexpr Place kName{0, 100}, kMode{100, 8}, kUser{108, 8}, kGroup{116, 8}, kSize{124, 12}, kTime{136, 12},
    kChecksum{148, 8}, kMagic{257, 8}, kPrefix{345, 155};
constexpr size_t kType = 156;
constexpr char kPosixMagic[] = "ustar";  // with its NUL; GNU has a blank there, and no prefix

// A name or a set of pax records longer than this is damage, not data.
constexpr uint64_t kMaxExtendedBytes = 1 << 20;

using Block = std::span<const uint8_t>;

std::string_view TextAt(Block block, Place place) {
  const std::string_view text(reinterpret_cast<const char*>(block.data()) + place.offset, place.length);
  return text.substr(0, text.find('\0'));
}

std::optional<uint64_t> ParseOctal(std::string_view text) {
  const std::string_view digits = Trim(text);
  if (digits.empty()) return 0;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// Octal digits or, with the first bit set, a big-endian number (GNU's "base-256").
std::optional<uint64_t> ParseSize(Block block) {
  const Block field = block.subspan(kSize.offset, kSize.length);
  if (field[0] == 0x80) {
    uint64_t value = 0;
    for (const uint8_t byte : field.subspan(1)) {
      if (value >> 55) return std::nullopt;
      value = value << 8 | byte;
    }
    return value;
  }
  if (field[0] & 0x80) return std::nullopt;  // negative
  return ParseOctal(TextAt(block, kSize));
}

bool ChecksumHolds(Block block) {
  int64_t as_unsigned = 0, as_signed = 0;  // old tars added signed characters
  for (size_t i = 0; i < kTarBlock; ++i) {
    const bool own = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.length;
    const uint8_t byte = own ? ' ' : block[i];
    as_unsigned += byte;
    as_signed += static_cast<int8_t>(byte);
  }
  const auto stored = ParseOctal(TextAt(block, kChecksum));
  return stored &&
         (static_cast<int64_t>(*stored) == as_unsigned || static_cast<int64_t>(*stored) == as_signed);
}

bool IsZero(Block block) {
  return std::all_of(block.begin(), block.end(), [](uint8_t byte) { return byte == 0; });
}

std::string NameOf(Block block) {
  std::string name(TextAt(block, kName));
  const bool posix = std::memcmp(block.data() + kMagic.offset, kPosixMagic, sizeof kPosixMagic) == 0;
  const std::string_view prefix = TextAt(block, kPrefix);
  return posix && !prefix.empty() ? std::string(prefix) + "/" + name : name;
}

Error Damaged(const std::string& path, uint64_t at, const std::string& why) {
  return {ErrorCode::kCorrupt, fmt::format("'{}' is damaged at byte {}: {}", path, at, why), ""};
}

Error Sparse(const std::string& path, uint64_t at) {
  return {ErrorCode::kUnsupported, fmt::format("'{}' has a sparse member at byte {}", path, at),
          "create it again without --sparse"};
}

// "LENGTH key=value\n" after one another.
template <typename Visit>
bool VisitPax(std::string_view records, Visit visit) {
  while (!records.empty()) {
    size_t length = 0;
    const auto [end, error] = std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<size_t>(end - records.data());
    if (error != std::errc() || length > records.size() || length < digits + 3) return false;
    std::string_view record = records.substr(digits, length - digits);
    if (record.front() != ' ' || record.back() != '\n') return false;
    record = record.substr(1, record.size() - 2);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) return false;
    visit(record.substr(0, equals), record.substr(equals + 1));
    records.remove_prefix(length);
  }
  return true;
}

enum class Meaning { kFile, kExtended, kIgnoredWithData, kIgnored, kSparse };

Meaning MeaningOf(char type, std::string_view name) {
  switch (type) {
    case '\0':
      return name.ends_with('/') ? Meaning::kIgnored : Meaning::kFile;  // a directory, before POSIX
    case '0':
    case '7':
      return Meaning::kFile;
    case 'L':  // GNU: the next member's name
    case 'x':  // pax: about the next member
      return Meaning::kExtended;
    case 'S':
      return Meaning::kSparse;
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
      return Meaning::kIgnored;  // links, devices, directories: no data, whatever the size says
    default:
      return Meaning::kIgnoredWithData;
  }
}

void PutOctal(std::array<uint8_t, kTarBlock>& block, Place place, uint64_t value) {
  const std::string digits = fmt::format("{:0{}o}", value, place.length - 1);
  std::copy(digits.begin(), digits.end(), block.begin() + static_cast<std::ptrdiff_t>(place.offset));
}

}  // namespace

Result<void> TarScanner::ReadExtended(char type, uint64_t bytes, Extended& extended) {
  const uint64_t header = at_;
  if (bytes > kMaxExtendedBytes) return Damaged(reader_.path(), header, "an impossibly long name");
  auto data = reader_.At(at_ + kTarBlock, bytes);
  if (!data) return data.error();
  const std::string_view text(reinterpret_cast<const char*>(data->data()), data->size());
  if (type == 'L') {
    extended.name = std::string(text.substr(0, text.find('\0')));
    return {};
  }
  bool sparse = false, readable = true;
  const bool whole = VisitPax(text, [&](std::string_view key, std::string_view value) {
    if (key == "path") extended.name = std::string(value);
    if (key.starts_with("GNU.sparse.")) sparse = true;
    if (key != "size") return;
    const auto size = ParseInt(value);
    readable = size && *size >= 0;
    if (readable) extended.bytes = static_cast<uint64_t>(*size);
  });
  if (sparse) return Sparse(reader_.path(), header);
  if (!whole || !readable) return Damaged(reader_.path(), header, "its pax records cannot be parsed");
  return {};
}

Result<std::optional<TarMember>> TarScanner::Next() {
  Extended extended;
  while (true) {
    if (at_ == reader_.file_bytes()) return std::optional<TarMember>();
    auto got = reader_.At(at_, kTarBlock);
    if (!got) return got.error();
    const Block block = *got;
    if (IsZero(block)) {
      ended_with_marker_ = true;
      return std::optional<TarMember>();
    }
    if (!ChecksumHolds(block))
      return Damaged(reader_.path(), at_, "not a tar header, or one with a wrong checksum");
    const auto stored = ParseSize(block);
    if (!stored) return Damaged(reader_.path(), at_, "its size is not a number");
    const char type = static_cast<char>(block[kType]);
    TarMember member{NameOf(block), at_, *stored, Crc32c(block)};
    const Meaning meaning = MeaningOf(type, member.name);
    if (meaning == Meaning::kSparse) return Sparse(reader_.path(), at_);
    if (meaning == Meaning::kExtended) {
      if (auto read = ReadExtended(type, member.bytes, extended); !read) return read.error();
    } else if (meaning == Meaning::kFile) {
      if (extended.name) member.name = *extended.name;
      if (extended.bytes) member.bytes = *extended.bytes;
    }
    const uint64_t data = meaning == Meaning::kIgnored ? 0 : member.bytes;
    const uint64_t left = reader_.file_bytes() - at_ - kTarBlock;
    if (data > left) {
      return Error{
          ErrorCode::kCorrupt,
          fmt::format("'{}' is truncated at byte {}, within '{}', which begins at byte {} and has {} bytes",
                      reader_.path(), reader_.file_bytes(), member.name, at_, data),
          "the copy is incomplete"};
    }
    at_ += kTarBlock + std::min(TarPadded(data), left);
    if (meaning == Meaning::kFile) return std::optional(std::move(member));
    if (meaning != Meaning::kExtended) extended = {};
  }
}

std::array<uint8_t, kTarBlock> MakeTarHeader(std::string_view name, uint64_t bytes) {
  static_assert(kName.length == kMaxTarNameBytes);
  FB_CHECK(name.size() <= kMaxTarNameBytes && bytes <= kMaxTarMemberBytes);
  std::array<uint8_t, kTarBlock> block{};
  std::copy(name.begin(), name.end(), block.begin());
  PutOctal(block, kMode, 0644);
  PutOctal(block, kUser, 0);
  PutOctal(block, kGroup, 0);
  PutOctal(block, kSize, bytes);
  PutOctal(block, kTime, 0);
  block[kType] = '0';
  constexpr char kMagicAndVersion[] = "ustar\00000";
  std::copy_n(kMagicAndVersion, kMagic.length, block.begin() + kMagic.offset);
  std::fill_n(block.begin() + kChecksum.offset, kChecksum.length, ' ');
  uint64_t sum = 0;
  for (const uint8_t byte : block) sum += byte;
  PutOctal(block, {kChecksum.offset, 7}, sum);  // six digits, a NUL and a blank
  block[kChecksum.offset + 6] = 0;
  return block;
}

}  // namespace fullbore::loader
