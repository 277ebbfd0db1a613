#include "base/printable.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/text.h"
#include "base/utf8.h"

namespace fullbore {

namespace {

int Width(char32_t code) { return utf8proc_charwidth(static_cast<utf8proc_int32_t>(code)); }

// By Unicode category: a control, a format character (this includes all that change the writing direction), a
// line separator, or an unassigned code, whose width nobody knows.
bool IsUnprintable(char32_t code) {
  if (code < 0x80) return code < 0x20 || code == 0x7F;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return true;
    default:
      return false;
  }
}

std::string Escape(char32_t code) {
  const auto number = static_cast<uint32_t>(code);
  if (code < 0x80) return fmt::format("\\x{:02x}", number);
  return code < 0x10000 ? fmt::format("\\u{:04x}", number) : fmt::format("\\U{:08x}", number);
}

std::string JsonEscape(char32_t code) {
  const auto number = static_cast<uint32_t>(code);
  if (code < 0x10000) return fmt::format("\\u{:04x}", number);
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((number - 0x10000) >> 10),
                     0xDC00 + ((number - 0x10000) & 0x3FF));
}

std::string InAscii(char32_t code) {
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
      return Escape(code);
  }
}

// How many bytes of the text fit into `columns`.
size_t Fitting(std::string_view text, int columns) {
  size_t bytes = 0;
  while (bytes < text.size()) {
    const Utf8Character next = FrontCharacter(text.substr(bytes));
    columns -= Width(next.code);
    if (columns < 0) break;
    bytes += next.bytes;
  }
  return bytes;
}

}  // namespace

bool LocaleIsUtf8() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(variable);
    if (!value || !*value) continue;
    std::string name(value);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name.find("utf-8") != std::string::npos || name.find("utf8") != std::string::npos;
  }
  return false;
}

std::string Printable(std::string_view text, bool unicode) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character next = FrontCharacter(text);
    if (!next.valid) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else if (next.code == '\n' || next.code == '\t' || next.code == '\r') {
      out += ' ';
    } else if (IsUnprintable(next.code)) {
      out += Escape(next.code);
    } else if (next.code >= 0x80 && !unicode) {
      out += InAscii(next.code);
    } else {
      out += text.substr(0, next.bytes);
    }
    text.remove_prefix(next.bytes);
  }
  return out;
}

std::string PrintableJson(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const Utf8Character next = FrontCharacter(json);
    const bool is_layout = next.code < 0x20;  // inside strings, JSON has these as escapes already
    if (!is_layout && IsUnprintable(next.code)) {
      out += JsonEscape(next.code);
    } else {
      out += json.substr(0, next.bytes);
    }
    json.remove_prefix(next.bytes);
  }
  return out;
}

int Columns(std::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    const Utf8Character next = FrontCharacter(text);
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
  const std::string_view kept = text.substr(0, Fitting(text, room));
  return std::string(kept.substr(0, kept.find_last_not_of(' ') + 1))
      .append(ellipsis);  // its indentation stays
}

std::string ElideFront(std::string_view text, int columns, bool unicode) {
  if (Columns(text) <= columns) return std::string(text);
  const std::string_view ellipsis = unicode ? "…" : "...";
  while (!text.empty() && Columns(text) + Columns(ellipsis) > columns)
    text.remove_prefix(FrontCharacter(text).bytes);
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

}  // namespace fullbore
