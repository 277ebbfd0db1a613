// What a run has before its command starts: a name, a file, and a place where its processes leave what they have to tell.
// Made in the directory of runs, or in a temporary one where that fails; what is lost by it is said on the terminal.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "measure/collect/channel_place.h"
#include "measure/collect/run.h"
#include "measure/collect/run_place.h"
#include "record/run_writer.h"

namespace fullbore::collect {

struct RunFiles {
  record::RunWriter writer;
  RunPlace place;
  ChannelPlace channels;  // empty if there are none: training steps are not recorded
  int64_t begin_ns = 0;

  // None where nothing can be recorded.
  static std::optional<RunFiles> Make(const RunOptions& options);
  // Nothing ran, so nothing of it is kept, unless the file holds other stages.
  void Discard() &&;
};

// That those which become names of files can be such.
Result<void> CheckNames(const RunOptions& options);

}  // namespace fullbore::collect
