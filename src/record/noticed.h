// What was noticed about a rank's recording while it was taken in: counts, not judgements. Each of them limits what may be
// concluded from the recording; explain/fitness says what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fullbore::record {

// How the steps were told.
enum class StepsBy : uint8_t {
  kMarks,      // by the profiler or the hook
  kRanges,     // ranges that the user named steps
  kOptimizer,  // by its calls
  kPeriod,     // something repeats: training steps, or layers, or requests
  kNothing,    // the whole recording counts as one
};

// What an iteration of a serving engine does: it reads prompts, generates, or both.
enum class ServingPhase : uint8_t { kUnknown, kPrefill, kDecode, kMixed };
inline constexpr int kServingPhaseCount = 4;

struct ServedPhase {
  ServingPhase phase = ServingPhase::kUnknown;
  int64_t iterations = 0;
  int64_t ns = 0;
  std::optional<int64_t> tokens;  // computed in them; absent where the marks do not say it of each
};

struct Noticed {
  // ---- of the file ----
  std::optional<int64_t> breaks_off_at;  // the byte at which the text ends in the middle
  int64_t left_out = 0;                  // operations and events without a usable time, or damaged
  int64_t cut = 0;  // operations that were recorded longer than until the next one on their stream began
  // By how much operations seem to begin before their launches (less than 0: too long after them, or to end after the
  // host had waited for them), because the device's clock is off.
  std::optional<int64_t> clock_ahead_ns;
  bool clock_corrected = false;  // their times were moved by that, or else it is only known

  // ---- of the device and the calls ----
  int64_t launches = 0;     // calls that run operations; not the last ones, if these ran after the recording
  int64_t ran_nothing = 0;  // of them: no operation of theirs was recorded
  struct Stretch {
    int64_t begin_ns = 0, end_ns = 0;
    int64_t launches = 0, ran_nothing = 0;
  };
  // In which the device may have worked for launches that ran nothing, though it is idle by what was recorded.
  std::vector<Stretch> bare;
  int64_t captures = 0;    // calls that capture a graph
  int64_t cold_calls = 0;  // launches that took a hundred times what they usually take, and loading of code
  int64_t cold_ns = 0;     // their time
  int64_t span_ns = 0;     // of the device, first operation to last
  int64_t devices = 0;     // of this process
  // Of all kernels that compute and whose launch is known, where some compute again what the forward pass had computed;
  // and of those.
  int64_t computed_ns = 0, recomputed_ns = 0;
  // Where they are several: how long each was busy, the one that is judged first, and for how long at least two of them
  // were at the same time.
  std::vector<int64_t> each_busy_ns;
  int64_t together_ns = 0;

  // ---- of the steps ----
  StepsBy steps_by = StepsBy::kNothing;
  int64_t stepped_ns = 0;  // of span_ns, within steps
  // Of a recording whose profiler's cost is known and left out: how many times as long a recorded step took.
  std::optional<double> slowed;
  int64_t empty_steps = 0;  // at the ends, in which the device did nothing: left out
  int64_t bare_steps = 0;   // at the ends, in which what it did was not recorded: left out
  // Of the pipeline that the rank is a stage of: within steps, how long nothing but a send or receive ran that waited
  // for another stage, and how long nothing but its transfer.
  int64_t bubble_ns = 0;
  int64_t transfer_ns = 0;
  int64_t stretches = 1;            // recordings of one process, one after the other, that are taken as one
  std::string engine;               // whose requests or layers repeat, where it is no training: "vLLM"
  std::vector<ServedPhase> served;  // by its own marks; empty where it makes none
};

}  // namespace fullbore::record
