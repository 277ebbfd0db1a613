#include "loader/core/source/field_kinds.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/text.h"
#include "base/utf8.h"

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
  return !has_nul && IsText(bytes) ? SourceFieldKind::kText : SourceFieldKind::kBytes;
}

bool IsText(std::span<const uint8_t> bytes) {
  return IsUtf8({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Result<std::vector<WantedField>> ParseWantedFields(const std::vector<std::string>& fields) {
  std::vector<WantedField> wanted;
  for (const std::string& field : fields) {
    WantedField parsed;
    for (const std::string_view name : Split(field, ';')) {
      if (Trim(name).empty())
        return Error{ErrorCode::kInvalidArgument, "the field '" + field + "' has an empty name",
                     "write alternatives as \"jpg;png\""};
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
