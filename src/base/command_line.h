// A command as one text, such as `--candidate 'python train.py --lr 0.1'`, and as the words a shell makes of it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fullbore {

// Quotes and backslashes as in a POSIX shell; variables in front ("OMP_NUM_THREADS=1 python train.py") go through
// `env`. What only a shell understands ("a && b", "$HOME/data", "*.bin") is given to one whole: /bin/sh -c TEXT. An
// error for an empty text, and for a quote that is not closed.
Result<std::vector<std::string>> WordsOfCommand(std::string_view text);

// The words as one line that a shell splits into them again: quoted where it takes that, with blanks between them.
std::string ShellLine(std::span<const std::string> words);

}  // namespace fullbore
