// A part of the device time that a run, or a job of several, was given: what it was for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore::fleet {

// In the order of reports: what came of the time first. docs/fleet.md says what each counts; stores know them by name.
enum class Kind : uint8_t {
  kWork,           // the rest of the steady state
  kPadding,        // of its work, what only fills samples to one length
  kRecomputation,  // what is computed for the second time
  kSlowKernels,    // what kernels take beyond what the device could do
  kWaste,          // the device waited for what a finding names
  kCheckpoint,
  kValidation,
  kLost,  // steps after the last checkpoint of a run that ended badly
  kStart,
  kCompile,
  kWarmUp,
  kEnd,
  kNotJudged,
  kExempt,   // of a report: what a rule says is never called wasted
  kBetween,  // of a job: its allocation held the devices, and none of its runs did
};
std::span<const Kind> AllKinds();
const char* Name(Kind kind);            // "waste": as in databases and JSON
Kind KindNamed(std::string_view name);  // kNotJudged for a name that is none
const char* NameForPeople(Kind kind);   // "wasted, waiting"

struct Part {
  Kind kind = Kind::kWork;
  std::string cause;  // of waste the finding's id, of exempt time why; else empty
  int64_t device_ns = 0;
};

// Device time of any number of runs: 64 bits of nanoseconds are 292 years, which a thousand devices spend in a season.
__extension__ typedef __int128 WideNs;

// The same of many runs.
struct PartTotal {
  Kind kind = Kind::kWork;
  std::string cause;
  WideNs device_ns = 0;
  double cost = 0;  // where a report has prices
};

// The same parts, added up; `parts` keeps the order of kinds.
void AddUp(std::vector<Part>& parts, const Part& part);
void AddUp(std::vector<PartTotal>& parts, const PartTotal& part);

}  // namespace fullbore::fleet
