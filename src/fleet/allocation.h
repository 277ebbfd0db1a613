// What the scheduler gave a job from one start of it to its end or its return to the queue, as Slurm's accounting has it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore::fleet {

struct Allocation {
  int64_t begin_unix_ns = 0, end_unix_ns = 0;  // of one that goes on, until it was asked
  int64_t devices = 0;                         // GPUs; 0 where the accounting does not count any
  std::string state;                           // "COMPLETED", "REQUEUED", "CANCELLED by 1000"
};

// The arguments of sacct whose answer AllocationsIn understands. Its times are seconds since 1970 where the environment
// has SLURM_TIME_FORMAT=%s.
std::vector<std::string> SacctArguments(const std::string& job);

// Those of this job and user (any, where empty), by their begin. Lines that say anything else are passed over, as are
// those of a job that still waits.
std::vector<Allocation> AllocationsIn(std::string_view said, std::string_view job, std::string_view user);

}  // namespace fullbore::fleet
