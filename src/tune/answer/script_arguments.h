// Where a Python script sets the arguments of its DataLoader. Python's own parser finds it, run by the interpreter that
// the command uses, so that it reads the script as the training does; the script is neither run nor imported.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tune/knob/settings.h"

namespace fullbore::tune {

struct ArgumentChanges {
  struct Edit {
    size_t begin, end;  // bytes of the script
    std::string text;
  };
  struct ByHand {
    std::string setting;
    int line;  // from 1
    std::string why;
  };
  std::vector<Edit> edits;  // in order; none reaches over the end of a line
  std::vector<ByHand> by_hand;
};

// What to change for the loader created at `line`. A setting that it already has is in neither list. An error if no
// Python could parse the script. Blocks for as long as Python takes to start, a few seconds at most.
Result<ArgumentChanges> FindArguments(std::string_view script, int line, const Settings& settings,
                                      const std::vector<std::string>& command);

// The interpreters to ask, the best first: the one in the command, that of a program which is a Python script
// (torchrun, accelerate), and those of the PATH.
std::vector<std::string> PythonsOf(const std::vector<std::string>& command);

// The Python sources that find it.
extern const std::string_view kScriptNames, kArgumentFinder, kFindArguments;

}  // namespace fullbore::tune
