// What may be shown on a terminal. File names, commands, archive members and server messages hold whatever
// somebody chose: a terminal would obey an escape sequence in them, and right-to-left marks would mislead the
// reader. So everything that is printed goes through Printable first; the other functions lay out its result.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fullbore {

// Whether the terminal takes UTF-8, judged by the locale. If not, it could take part
// of a character for a control.
bool LocaleIsUtf8();

// One line of text. Line breaks and tabs become blanks. Controls, bytes that are not valid UTF-8, and
// characters that change the writing direction or are invisible become escapes: "\x1b", "\u202e". Without
// `unicode`, so does everything that is not ASCII, unless it has an ASCII equivalent.
std::string Printable(std::string_view text, bool unicode);

// The same for finished JSON: uses JSON's own escapes, so that its meaning does not change.
std::string PrintableJson(std::string_view json);

// Columns that the text takes: two for wide East Asian characters and emoji, none for combining marks.
int Columns(std::string_view text);

// The text, or as much of its beginning as fits, followed by an ellipsis.
std::string Elide(std::string_view text, int columns, bool unicode);

// The same from the end, which is the telling part of a path: "…/project/train.py:57".
std::string ElideFront(std::string_view text, int columns, bool unicode);

// Lines of at most `columns`, broken at blanks; a word longer than a line is broken
// anywhere. At least one line.
std::vector<std::string> Wrap(std::string_view text, int columns);

// The text padded with blanks to `columns`.
std::string Pad(std::string_view text, int columns);

}  // namespace fullbore
