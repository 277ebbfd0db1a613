#include "report/layout.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/text.h"

namespace fullbore::report {

namespace {

struct Character {
  uint32_t code = 0xFFFD;
  size_t bytes = 1;
  bool valid = false;
};

// The character at the front of a text that is not empty. A broken sequence is one invalid byte.
Character Front(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1, true};
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  uint32_t code = lead & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return {};
    code = (code << 6) | (next & 0x3F);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  if (overlong || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {code, length, true};
}

// Blocks of Unicode's East Asian Width "W" and of emoji, coarsely.
constexpr std::array<std::array<uint32_t, 2>, 7> kWide = {{{0x1100, 0x115F},
                                                           {0x2E80, 0xA4CF},
                                                           {0xAC00, 0xD7A3},
                                                           {0xF900, 0xFAFF},
                                                           {0xFE30, 0xFE6F},
                                                           {0xFF00, 0xFF60},
                                                           {0x1F300, 0x3FFFD}}};

int Width(uint32_t code) {
  if ((code >= 0x300 && code <= 0x36F) || (code >= 0xFE00 && code <= 0xFE0F)) return 0;
  for (const auto& [first, last] : kWide) {
    if (code >= first && code <= last) return 2;
  }
  return 1;
}

// Controls of ASCII and Latin-1, and the marks that turn the direction of writing or take no room.
bool IsUnprintable(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x200B && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

std::string_view InAscii(uint32_t code) {
  switch (code) {
    case 0xB1:
      return "+-";
    case 0xB7:
      return "-";
    case 0xD7:
      return "x";
    case 0xB5:
    case 0x3BC:
      return "u";
    case 0x2013:
    case 0x2014:
      return "-";
    case 0x2018:
    case 0x2019:
      return "'";
    case 0x201C:
    case 0x201D:
      return "\"";
    case 0x2026:
      return "...";
    case 0x2192:
      return "->";
    case 0x2264:
      return "<=";
    case 0x2265:
      return ">=";
    default:
      return "?";
  }
}

// How many bytes of the text fit into `columns`.
size_t Fitting(std::string_view text, int columns) {
  size_t bytes = 0;
  while (bytes < text.size()) {
    const Character next = Front(text.substr(bytes));
    columns -= Width(next.code);
    if (columns < 0) break;
    bytes += next.bytes;
  }
  return bytes;
}

}  // namespace

std::string Printable(std::string_view text, bool unicode) {
  std::string out;
  while (!text.empty()) {
    const Character next = Front(text);
    if (next.code == '\n' || next.code == '\t' || next.code == '\r') {
      out += ' ';
    } else if (!next.valid || IsUnprintable(next.code)) {
      out += '?';
    } else if (next.code >= 0x80 && !unicode) {
      out += InAscii(next.code);
    } else {
      out += text.substr(0, next.bytes);
    }
    text.remove_prefix(next.bytes);
  }
  return out;
}

int Columns(std::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    const Character next = Front(text);
    columns += Width(next.code);
    text.remove_prefix(next.bytes);
  }
  return columns;
}

std::string Elide(std::string_view text, int columns, bool unicode) {
  if (Columns(text) <= columns) return std::string(text);
  const std::string_view ellipsis = unicode ? "…" : "...";
  const int room = columns - Columns(ellipsis);
  if (room <= 0) return std::string(text.substr(0, Fitting(text, std::max(columns, 0))));
  return std::string(Trim(text.substr(0, Fitting(text, room)))).append(ellipsis);
}

std::string ElideFront(std::string_view text, int columns, bool unicode) {
  if (Columns(text) <= columns) return std::string(text);
  const std::string_view ellipsis = unicode ? "…" : "...";
  while (!text.empty() && Columns(text) + Columns(ellipsis) > columns) text.remove_prefix(Front(text).bytes);
  return std::string(ellipsis).append(text);
}

std::vector<std::string> Wrap(std::string_view text, int columns) {
  columns = std::max(columns, 2);  // room for one wide character
  std::vector<std::string> lines(1);
  for (std::string_view word : Words(text)) {
    if (!lines.back().empty() && Columns(lines.back()) + 1 + Columns(word) > columns) lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    while (Columns(word) > columns) {
      const size_t bytes = Fitting(word, columns);
      lines.back() = word.substr(0, bytes);
      lines.emplace_back();
      word.remove_prefix(bytes);
    }
    lines.back() += word;
  }
  return lines;
}

std::string Pad(std::string_view text, int columns) {
  return std::string(text).append(static_cast<size_t>(std::max(0, columns - Columns(text))), ' ');
}

}  // namespace fullbore::report
