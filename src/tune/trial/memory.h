// How much memory a trial took, from its recording: on the devices if the command uses any, otherwise on the host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "record/recording.h"

namespace fullbore::tune {

struct MemoryUse {
  // The peak of the command: on all devices together, or the sum of the peaks of all its processes. Nothing if it ended
  // before anything was sampled.
  std::optional<int64_t> peak_bytes;
  // The highest share of the memory in use, by any process: on the fullest device that the command uses, or on the host
  // or its cgroup, whichever is fuller.
  std::optional<double> filled;
};

MemoryUse MemoryUseOf(const record::Stage& stage);
MemoryUse MemoryUseOf(const std::string& run_file);  // both are empty if the file cannot be read

}  // namespace fullbore::tune
