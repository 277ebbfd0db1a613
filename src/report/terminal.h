// A diagnosis as one screen of a terminal: the verdict first, then what to change, where a step's time goes,
// and where to read more. Texts from the recording cannot move the cursor. No line is wider than the style
// says, except for the path of the full report, which must stay one word to be copied.
#pragma once

#include <span>
#include <string>

#include "explain/diagnose/diagnosis.h"

namespace fullbore::report {

struct TerminalStyle {
  int width = 100;
  bool color = false;
  bool unicode = true;
};

// The style that suits a file descriptor: the terminal's width, colours only on a terminal and not with
// NO_COLOR or TERM=dumb, Unicode if the locale is UTF-8.
TerminalStyle StyleFor(int fd);

// What the last line refers to; either may be empty.
struct FurtherReading {
  std::string html;   // path of the full report
  std::string again;  // "fullbore explain 2026-11-21-0915-train"
};

std::string ToTerminal(const diagnose::Diagnosis& diagnosis, const TerminalStyle& style,
                       const FurtherReading& further = {});

// A run of several stages: each in turn; what they share is shown once.
std::string ToTerminal(std::span<const diagnose::Diagnosis> stages, const TerminalStyle& style,
                       const FurtherReading& further = {});

}  // namespace fullbore::report
