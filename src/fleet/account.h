// Where the device time that one run was given went. The parts sum to what was given, to the nanosecond.
//
// Wasted is the time in which the device waited for something that a finding names, and nothing else: never one minus
// the utilisation. A finding takes at most the share of the step that it is about, so that two of them never count the
// same moment, and one that says how the device works rather than what it waits for takes nothing, but for padding,
// recomputation and slow kernels, which are parts of their own, as are checkpoints, validation and lost steps. What could
// not be judged is a part of its own, too, and what is not known is not split.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "explain/diagnose/diagnosis.h"
#include "fleet/part.h"
#include "fleet/use.h"
#include "record/recording.h"

namespace fullbore::fleet {

// What a run's report recommends, with what it brings back of this run.
struct Advice {
  std::string finding, cause, title, change;
  double low = 1, expected = 1, high = 1;  // times as fast
  int64_t steady_ns = 0;                   // device time of the steady state, to which that applies

  int64_t SavesNs(double speedup) const {
    return speedup > 1 ? static_cast<int64_t>(static_cast<double>(steady_ns) * (1 - 1 / speedup)) : 0;
  }
};

struct RunAccount {
  std::string id, path;
  std::string user, job, job_name, account, partition;  // empty where unknown
  std::string node;                                     // that it ran on; empty for a run on several
  std::vector<std::string> nodes;                       // all of them
  std::string device;                                   // "NVIDIA H100 80GB HBM3", "cpu"
  int64_t devices = 0;
  int64_t begin_unix_ns = 0, end_unix_ns = 0;  // the end is the last moment that was recorded
  int64_t job_start_unix_s = 0;                // when its job's allocation began; 0 where unknown
  int64_t given_ns = 0;                        // of each stage, its time times its devices
  bool ended = false;                          // else it goes on, or was cut off
  bool cut_off = false;                        // it goes on no more, though nobody recorded its end
  std::optional<int> exit_status;              // of its last command, as a shell shows it
  bool saves = false;                          // a checkpoint was seen
  bool lost_unknown = false;  // it ended badly, and no checkpoint was seen: what was lost is not known
  // Of the stage that trained longest, as the verdict, the rate and the first advice:
  std::string directory, command;  // secrets masked by the recorder
  std::string verdict;             // the first finding's title, or why nothing can be said
  double steps_per_s = 0;          // of the steady state; 0 where unknown
  std::vector<Part> parts;
  std::vector<Advice> advice;  // findings that promise something, the first first
  Use use;

  bool EndedBadly() const { return cut_off || exit_status.value_or(0) != 0; }
};

// What a recording does not tell of its end.
struct Ending {
  bool cut_off = false;  // its recorder is gone, though it says that the command runs
  bool saves = false;    // its training saves checkpoints: other runs of the job showed it
};

RunAccount AccountOf(const record::Recording& recording, const Ending& ending = {});

}  // namespace fullbore::fleet
