// What memory a trial took, by its recording: on the devices, where the command uses some; else on the host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "record/recording.h"

namespace fullbore::tune {

struct MemoryUse {
  // Of the command, at its most: on all devices together, or of all its processes, each at its own most. Nothing where
  // nobody looked before it ended.
  std::optional<int64_t> peak_bytes;
  // At its fullest, of the memory that there is, by whomever: of the fullest device that the command uses; or of the
  // host or its cgroup, whichever is fuller.
  std::optional<double> filled;
};

MemoryUse MemoryUseOf(const record::Stage& stage);
MemoryUse MemoryUseOf(const std::string& run_file);  // nothing is known of a file that cannot be read

}  // namespace fullbore::tune
