#include "base/utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace fullbore {

namespace {

// The length of a leading run of ASCII: first whole blocks, which the compiler vectorises, then words.
size_t AsciiBytes(std::string_view text) {
  constexpr uint64_t kNotAscii = 0x8080808080808080;
  std::array<uint64_t, 8> block;
  size_t at = 0;
  for (; text.size() - at >= sizeof block; at += sizeof block) {
    std::memcpy(block.data(), text.data() + at, sizeof block);
    uint64_t any = 0;
    for (const uint64_t word : block) any |= word;
    if ((any & kNotAscii) != 0) break;
  }
  for (uint64_t word = 0; text.size() - at >= sizeof word; at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if ((word & kNotAscii) != 0) break;
  }
  return at;
}

bool Continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

Utf8Character FrontCharacter(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1, true};
  constexpr size_t kMaxBytes = 4;
  utf8proc_int32_t code = 0;
  const utf8proc_ssize_t bytes =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                       static_cast<utf8proc_ssize_t>(std::min(text.size(), kMaxBytes)), &code);
  if (bytes <= 0) return {};
  return {static_cast<char32_t>(code), static_cast<size_t>(bytes), true};
}

void AppendUtf8(std::string* out, char32_t code) {
  constexpr char32_t kLast = 0x10FFFF;
  const bool valid = code <= kLast && utf8proc_codepoint_valid(static_cast<utf8proc_int32_t>(code));
  std::array<utf8proc_uint8_t, 4> bytes;
  const utf8proc_ssize_t size =
      utf8proc_encode_char(static_cast<utf8proc_int32_t>(valid ? code : 0xFFFD), bytes.data());
  out->append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(size));
}

bool IsUtf8(std::string_view text) {
  while (true) {
    text.remove_prefix(AsciiBytes(text));
    if (text.empty()) return true;
    const Utf8Character next = FrontCharacter(text);
    if (!next.valid) return false;
    text.remove_prefix(next.bytes);
  }
}

std::string MendUtf8(std::string_view text) {
  if (IsUtf8(text)) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const Utf8Character next = FrontCharacter(text);
    if (next.valid) {
      out += text.substr(0, next.bytes);
    } else {
      AppendUtf8(&out, next.code);
    }
    text.remove_prefix(next.bytes);
  }
  return out;
}

std::string_view Utf8Front(std::string_view text, size_t bytes) {
  if (bytes >= text.size()) return text;
  while (bytes > 0 && Continues(text[bytes])) --bytes;
  return text.substr(0, bytes);
}

}  // namespace fullbore
