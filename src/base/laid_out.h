// A text for a terminal, laid out line by line: what is added is made printable, whatever it holds.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/printable.h"

namespace fullbore {

class LaidOut {
 public:
  explicit LaidOut(bool unicode, int columns = 100) : unicode_(unicode), columns_(columns) {}

  // Without the blanks at its end.
  template <typename... Arguments>
  void Line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    const std::string line = Printable(fmt::format(format, std::forward<Arguments>(arguments)...), unicode_);
    text_ += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  void Line() { text_ += "\n"; }

  // Broken between words, its first line after `indent` blanks and the others after `hanging`.
  void Paragraph(std::string_view text, int indent, int hanging) {
    int blanks = indent;
    for (const std::string& line : Wrap(Printable(text, unicode_), columns_ - std::max(indent, hanging))) {
      text_ += fmt::format("{:{}}{}\n", "", blanks, line);
      blanks = hanging;
    }
  }

  bool unicode() const { return unicode_; }
  std::string Take() { return std::move(text_); }

 private:
  bool unicode_;
  int columns_;
  std::string text_;
};

}  // namespace fullbore
