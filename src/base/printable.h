// What a terminal may be shown. File names, commands, names in archives and servers' messages hold whatever somebody
// chose: a terminal would obey an escape sequence in them, and a reader would believe text that is turned around. So
// everything that is printed goes through Printable first; the others here lay out its result in columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fullbore {

// Whether a terminal takes UTF-8, by the locale. Where it does not, a byte of a character may be a control to it.
bool LocaleIsUtf8();

// One line of text. Line breaks and tabs become blanks. Controls, bytes that are no UTF-8, and the marks that turn the
// direction of writing or cannot be seen become escapes: "\x1b", "\u202e". Without `unicode` so does all that is not
// ASCII, unless ASCII has something like it.
std::string Printable(std::string_view text, bool unicode);

// The same for JSON that is written already: escapes as JSON has them, so that it means what it meant.
std::string PrintableJson(std::string_view json);

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

}  // namespace fullbore
