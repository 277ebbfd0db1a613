// What a job was given beside its devices, and what its command used of it: as far as both were recorded. Of a run on
// several machines, on the first of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "record/recording.h"

namespace fullbore::fleet {

struct Use {
  std::optional<int64_t> cores_given;
  std::optional<double> cores_mean, cores_p95;  // that the command kept busy, over its whole time
  std::optional<int64_t> memory_given_bytes, memory_peak_bytes;
  std::optional<int64_t> time_given_ns, time_used_ns;  // of the job: its limit, and until this run's end
  std::optional<int64_t> gpus_given, gpus_used;        // used: the command was on it, and a kernel ran
  int64_t restarts = 0;                                // of the job, before this run
  bool sees_runs_within = false;                       // what those used is part of all this

  bool NeverTouchedItsGpu() const { return gpus_used && *gpus_used == 0; }
  bool operator==(const Use&) const = default;
};

Use UseOf(const record::Recording& recording);

// Of one thing that was asked for, of which is known what was used.
struct Amount {
  std::string_view what;       // "cores", "memory", "time", "GPUs"
  double given = 0, used = 0;  // cores, bytes, ns, GPUs
  // Half of it would have been enough, with a core, a gigabyte and an hour to spare; of GPUs, no kernel ran on any.
  bool hardly_used = false;
};
// What ended badly, or goes on, says nothing of the time that it would have needed.
std::vector<Amount> AmountsOf(const Use& use, bool ended_well);
std::vector<Amount> HardlyUsedIn(const Use& use, bool ended_well);

}  // namespace fullbore::fleet
