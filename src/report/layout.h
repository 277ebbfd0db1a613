// Laying out text in columns of a terminal. Texts may hold anything (file names, commands, titles), so they
// go through Printable first; everything else here takes its result.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fullbore::report {

// One line without control characters (a file name cannot move the cursor) and broken UTF-8; without
// `unicode` also without anything beyond ASCII.
std::string Printable(std::string_view text, bool unicode);

// Columns that the text takes: two for wide East Asian characters and emoji, none for combining marks.
int Columns(std::string_view text);

// The text, or as much of its beginning as fits with an ellipsis.
std::string Elide(std::string_view text, int columns, bool unicode);

// The end of a path is what tells: "…/project/train.py:57".
std::string ElideFront(std::string_view text, int columns, bool unicode);

// Lines of at most `columns`, broken at blanks, words longer than a line anywhere. At least one line.
std::vector<std::string> Wrap(std::string_view text, int columns);

// The text and blanks up to `columns`.
std::string Pad(std::string_view text, int columns);

}  // namespace fullbore::report
