// A comparison of recordings as text: for a terminal, as Markdown for a pull request, as JUnit XML for CI.
#pragma once

#include <string>

#include "report/compared.h"

namespace fullbore::report {

inline constexpr char kComparedTitle[] = "# fullbore compare";  // the first line of the Markdown
inline constexpr char kJunitMark[] = "<testsuites name=\"fullbore compare\"";

// Runs as columns where there is room for that, else each row's cells below each other.
std::string ComparedForTerminal(const ComparedTable& table, int columns, bool unicode);
std::string ComparedAsMarkdown(const ComparedTable& table);

// A test suite for each run but the first, a test case for each condition: what is not known is an error, not a failure.
std::string ComparedAsJunit(const Compared& compared);

}  // namespace fullbore::report
