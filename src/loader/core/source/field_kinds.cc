#include "loader/core/source/field_kinds.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/text.h"

namespace fullbore::loader {

namespace {

constexpr std::array<std::string_view, 10> kImages = {"jpg", "jpeg", "png", "webp", "ppm",
                                                      "pgm", "pbm",  "bmp", "tif",  "tiff"};
constexpr std::array<std::string_view, 7> kIntegers = {"cls", "cls2", "class", "count", "index", "inx", "id"};
constexpr std::array<std::string_view, 5> kTexts = {"json", "jsn", "txt", "text", "transcript"};

template <size_t N>
bool IsOneOf(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool StartsWith(std::span<const uint8_t> bytes, std::string_view magic, size_t offset = 0) {
  return bytes.size() >= offset + magic.size() &&
         std::memcmp(bytes.data() + offset, magic.data(), magic.size()) == 0;
}

// How many bytes the character has that begins at `at`; 0 where there is none.
size_t CharacterBytes(std::span<const uint8_t> at) {
  const uint8_t first = at[0];
  const size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (length == 0 || first > 0xf4 || at.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((at[i] & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xe0 && at[1] < 0xa0) || (first == 0xf0 && at[1] < 0x90);
  const bool surrogate = first == 0xed && at[1] >= 0xa0;
  const bool beyond = first == 0xf4 && at[1] >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

// The length of a front of ASCII letters: whole blocks of them, which the compiler looks at in vectors, then
// words.
size_t AsciiBytes(std::span<const uint8_t> bytes) {
  constexpr uint64_t kNotAscii = 0x8080808080808080;
  std::array<uint64_t, 8> block;
  size_t at = 0;
  for (; bytes.size() - at >= sizeof block; at += sizeof block) {
    std::memcpy(block.data(), bytes.data() + at, sizeof block);
    uint64_t any = 0;
    for (const uint64_t word : block) any |= word;
    if ((any & kNotAscii) != 0) break;
  }
  for (uint64_t word = 0; bytes.size() - at >= sizeof word; at += sizeof word) {
    std::memcpy(&word, bytes.data() + at, sizeof word);
    if ((word & kNotAscii) != 0) break;
  }
  return at;
}

}  // namespace

SourceFieldKind KindOfExtension(std::string_view extension) {
  const std::string_view last = extension.substr(extension.rfind('.') + 1);
  if (IsOneOf(last, kImages)) return SourceFieldKind::kImage;
  if (IsOneOf(last, kIntegers)) return SourceFieldKind::kInteger;
  if (IsOneOf(last, kTexts)) return SourceFieldKind::kText;
  return last == "npy" ? SourceFieldKind::kNpy : SourceFieldKind::kBytes;
}

SourceFieldKind KindOfContent(std::span<const uint8_t> bytes) {
  const bool webp = StartsWith(bytes, "RIFF") && StartsWith(bytes, "WEBP", 8);
  if (StartsWith(bytes, "\xff\xd8\xff") || StartsWith(bytes, "\x89PNG\r\n\x1a\n") || webp)
    return SourceFieldKind::kImage;
  if (StartsWith(bytes, "\x93NUMPY")) return SourceFieldKind::kNpy;
  const bool has_nul = std::find(bytes.begin(), bytes.end(), 0) != bytes.end();
  return !has_nul && IsUtf8(bytes) ? SourceFieldKind::kText : SourceFieldKind::kBytes;
}

bool IsUtf8(std::span<const uint8_t> bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    at += AsciiBytes(bytes.subspan(at));
    if (at == bytes.size()) break;
    const size_t length = CharacterBytes(bytes.subspan(at));
    if (length == 0) return false;
    at += length;
  }
  return true;
}

Result<std::vector<WantedField>> ParseWantedFields(const std::vector<std::string>& fields) {
  std::vector<WantedField> wanted;
  for (const std::string& field : fields) {
    WantedField parsed;
    for (const std::string_view name : Split(field, ';')) {
      if (Trim(name).empty())
        return Error{ErrorCode::kInvalidArgument, "the field '" + field + "' has an empty name",
                     "name them as \"jpg;png\""};
      parsed.alternatives.emplace_back(Trim(name));
    }
    parsed.name = parsed.alternatives.front();
    wanted.push_back(std::move(parsed));
  }
  return wanted;
}

std::vector<std::string> ImageAlternatives(std::string_view extension) {
  const size_t last = extension.rfind('.') + 1;
  std::vector<std::string> alternatives = {std::string(extension)};
  for (const std::string_view image : kImages) {
    if (image != extension.substr(last))
      alternatives.push_back(std::string(extension.substr(0, last)).append(image));
  }
  return alternatives;
}

}  // namespace fullbore::loader
