// UTF-8 text: its characters, whether it is valid, and repairing it if it is not. What people may be shown
// is the concern of printable.h.
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

// The first character of a text that is not empty.
Utf8Character FrontCharacter(std::string_view text);

// U+FFFD for a code that is not a character, such as half of a surrogate pair.
void AppendUtf8(std::string* out, char32_t code);

// Checks ASCII text at memory speed.
bool IsUtf8(std::string_view text);

// Replaces every byte that belongs to no character by U+FFFD.
std::string MendUtf8(std::string_view text);

// The longest prefix of at most `bytes` that ends with a whole character.
std::string_view Utf8Front(std::string_view text, size_t bytes);

}  // namespace fullbore
