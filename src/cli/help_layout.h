// The text of --help in the columns there are: CLI11 breaks no line by itself.
#pragma once

#include <string>
#include <string_view>

namespace fullbore::cli {

// Longer lines are harder to read than to scroll by, however wide the terminal is.
inline constexpr int kWidestHelp = 100;

// Breaks the descriptions, each below its own beginning, and joins what was broken for another width. Where a name
// leaves too little room beside it, its description begins on the next line.
std::string HelpInColumns(std::string_view help, int columns);

}  // namespace fullbore::cli
