#include "base/markup.h"

#include "base/printable.h"

namespace fullbore {

std::string InMarkdown(std::string_view text) {
  std::string plain;
  for (const char c : Printable(text, true)) {
    if (std::string_view("\\`*_{}[]<>#|!").find(c) != std::string_view::npos) plain += '\\';
    plain += c;
  }
  return plain;
}

std::string InHtml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// Printable leaves no control, which XML 1.0 cannot hold even escaped.
std::string InXml(std::string_view text) { return InHtml(Printable(text, true)); }

}  // namespace fullbore
