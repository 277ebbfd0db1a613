// Text as UTF-8: its characters, whether it is valid, and mending it where it is not. What people may be shown of a text
// is the matter of printable.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fullbore {

struct Utf8Character {
  char32_t code = 0xFFFD;
  size_t bytes = 1;
  bool valid = false;  // else one byte that belongs to no character
};

// The character at the front of a text that is not empty.
Utf8Character FrontCharacter(std::string_view text);

// U+FFFD for what is no character, such as half of a surrogate pair.
void AppendUtf8(std::string* out, char32_t code);

// Looks at ASCII text at the speed of memory.
bool IsUtf8(std::string_view text);

// Every byte that belongs to no character becomes U+FFFD.
std::string MendUtf8(std::string_view text);

// The longest front of at most `bytes` that ends with a whole character.
std::string_view Utf8Front(std::string_view text, size_t bytes);

}  // namespace fullbore
