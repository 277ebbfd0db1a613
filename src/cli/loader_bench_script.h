// Runs a training script until its training DataLoader is known, has the hook iterate that alone, and reads
// the result.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/bench/script_flow.h"

namespace fullbore::cli {

struct ScriptRun {
  std::string python, script;
  std::vector<std::string> arguments;
  double seconds = 3;
};

// The script's output goes to stderr. `tell` is called ten times a second.
Result<loader::bench::ScriptFlow> DrainScript(const ScriptRun& run, const std::atomic<bool>& stop,
                                              const std::function<void(const std::string& doing)>& tell);

}  // namespace fullbore::cli
