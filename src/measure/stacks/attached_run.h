// Records a training that already runs without us: the machine's probes beside it, and py-spy for where its processes
// are. Nothing is started in it or changed in it. The result is a run file like any other, of one stage.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "measure/stacks/target.h"

namespace fullbore::stacks {

struct AttachOptions {
  Target target;
  std::string py_spy;  // the program
  int64_t seconds = 30;
  std::string directory;  // of runs
  bool keep_command_lines = true;
  // Called five times a second with the seconds gone; false ends the sampling, and what there is is kept. Must not
  // throw.
  std::function<bool(double seconds)> goes_on;
};

// The run file's path. An error leaves no file.
Result<std::string> RecordAttached(const AttachOptions& options);

}  // namespace fullbore::stacks
