// Runs a short-lived program to its end and returns what it printed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fullbore {

struct Captured {
  int status = 0;              // as a shell reports it: the exit status, or 128 + the signal that ended it
  std::string output, errors;  // what it wrote to standard output, and to standard error

  std::string both() const { return output + errors; }
};

// `words[0]` is looked for in PATH; `input` is what it reads. Blocks until it has ended, at most `limit_ns`; then it is
// killed, and that is an error, as is a program that cannot be started (kNotFound where there is none).
Result<Captured> RunAndCapture(std::vector<std::string> words, int64_t limit_ns, std::string_view input = {});

}  // namespace fullbore
