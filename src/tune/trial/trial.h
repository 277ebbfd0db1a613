// A trial: settings, and what came of them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tune/knob/settings.h"

namespace fullbore::tune {

enum class Outcome : uint8_t {
  kOk,
  kOutOfMemory,  // of the host, a device or /dev/shm
  kCrashed,      // exit status other than 0
  kHung,         // no further step
  kRefused,      // a setting cannot be applied here
  kEndedEarly,   // the program ended before it could be measured
};
std::string_view Name(Outcome outcome);  // "ok", "out-of-memory", "crashed", "hung", "refused", "ended-early"
std::optional<Outcome> OutcomeNamed(std::string_view name);

struct Rate {
  double mean = 0, low = 0, high = 0;  // 95 %; low and high as the mean where the interval is not known
};

// The units of a rate: steps where it is not known how many samples a step has, and tokens that are no padding where
// these were asked for.
inline constexpr std::string_view kSamplesPerSecond = "samples/s", kStepsPerSecond = "steps/s",
                                  kTokensPerSecond = "useful tokens/s";

struct Trial {
  Settings settings;
  Outcome outcome = Outcome::kOk;
  std::string refused;       // the setting that was refused, if one was
  std::string why;           // in words, where the outcome is not ok, "noisy, +-6 %", or "short, 8 values"
  std::optional<Rate> rate;  // in `unit`; there if the outcome is ok
  std::optional<Rate> steps_rate;  // the same in steps/s, where the hook saw steps; not kept
  bool noisy = false;              // its interval is wider than requested
  bool cut_short = false;          // stopped once it could no longer be the best
  bool proves = false;             // made for a proof, not for the search
  bool in_slices = false;          // took turns with another one, alive at the same time
  bool apart = false;              // measured beside the answer, never recommended
  std::string unit = std::string(kSamplesPerSecond);
  std::optional<double> predicted;  // in that unit, said before it was tried
  std::optional<int64_t> peak_memory_bytes;
  // At its fullest, of the memory that there is: where the peak counts pages several times, this does not, and it
  // counts what others use.
  std::optional<double> memory_filled;
  std::optional<double> busy;        // of the step: not waiting for data
  int64_t steps = 0;                 // of the steady state
  double seconds = 0;                // all of it, start and end of the program included
  std::vector<double> first_losses;  // of the first rank, infinity and NaN as NaN; empty if not known
  std::string run;                   // id in the store

  bool ok() const { return outcome == Outcome::kOk && rate.has_value(); }
};

template <typename T>
nlohmann::ordered_json OrNull(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

// Adds "samples_per_s" and "steps_per_s" (null unless the unit is theirs), "useful_tokens_per_s" where the unit is its
// own, "ci95" and "unit".
void AddRate(const Trial& trial, nlohmann::ordered_json& object);
// As docs/tuning.md describes it, wherever a trial is told: what `measure` prints, the trials of `tune` and
// `compare`, of the page, and of what is kept for --resume.
nlohmann::ordered_json ToJson(const Trial& trial);
// The numbers of an array that holds nothing else; otherwise nothing. JSON writes null for NaN.
std::vector<double> Numbers(const nlohmann::json& array);
// From such a line; an error for anything else.
Result<Trial> TrialFrom(const nlohmann::json& object);

}  // namespace fullbore::tune
