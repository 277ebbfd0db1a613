// Where the device time that one run was given went. The parts sum to what was given, to the nanosecond.
//
// Wasted is the time in which the device waited for something that a finding names, and nothing else: never one minus
// the utilisation. A finding takes at most the share of the step that it is about, so that two of them never count the
// same moment, and one that says how the device works rather than what it waits for (small-batch, no-tensor-cores, padding)
// takes nothing. What could not be judged is a part of its own, and not waste.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"

namespace fullbore::fleet {

enum class Kind : uint8_t {
  kWork,
  kWaste,
  kStart,
  kEnd,
  kNotJudged,
  kExempt
};                            // kExempt: a report's (sums.h)
const char* Name(Kind kind);  // "work", "waste", "start", "end", "not judged", "exempt"

struct Part {
  Kind kind = Kind::kWork;
  std::string cause;  // of waste the finding's id, of exempt time why; else empty
  int64_t device_ns = 0;
};

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
  std::string user, job, account, partition;  // empty where unknown
  std::string node;                           // that it ran on; empty for a run on several
  std::string device;                         // "NVIDIA H100 80GB HBM3", "cpu"
  int64_t devices = 0;
  int64_t begin_unix_ns = 0;
  int64_t given_ns = 0;  // of each stage, its time times its devices
  bool ended = false;    // else it goes on, or was cut off
  // Of the stage that trained longest, as the verdict, the rate and the first advice:
  std::string directory, command;  // secrets masked by the recorder
  std::string verdict;             // the first finding's title, or why nothing can be said
  double steps_per_s = 0;          // of the steady state; 0 where unknown
  std::vector<Part> parts;
  std::vector<Advice> advice;  // findings that promise something, the first first
};

RunAccount AccountOf(const record::Recording& recording);

// The same parts, added up; `parts` keeps the order of kinds.
void AddUp(std::vector<Part>& parts, const Part& part);

}  // namespace fullbore::fleet
