// What changed between two diagnoses, and whether the difference is outside the noise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/share_noise.h"

namespace fullbore::diagnose {

struct Change {
  std::string what;  // "data_wait", "cpu_utilization", "loader.num_workers"
  std::string unit;  // "ratio", "bytes", "" for facts
  std::optional<double> before, after;
  std::string before_text, after_text;  // of facts
  std::optional<ShareMove> move;        // of a share whose noise is known
};

// What became of the first run's prediction for its first finding.
enum class Prediction : uint8_t {
  kNone,           // there was none
  kNotTested,      // the advised change was not made, as far as the recordings show
  kAnotherChange,  // something else was changed, instead of it or as well
  kTooNoisy,       // the interval holds both the predicted gain and none: it could not have failed
  kHeld,
  kMissed,
};
std::string_view Name(
    Prediction prediction);  // "not-tested", "another-change", "too-noisy", "held", "missed"

// With its 95 % interval.
struct Ratio {
  double value = 1, low = 1, high = 1;
};

struct Comparison {
  // Samples per second where both know it, else steps per second. Where a sample is not the same in both, because one
  // packs several into a row, the tokens that are not padding per second.
  std::string rate_unit;
  double rate_before = 0, rate_after = 0;
  double speedup = 1;  // rate after, divided by rate before
  // 95 %, with what two starts of one program differ by (between_starts.h); equal to speedup where a run was too short to
  // tell.
  double speedup_low = 1, speedup_high = 1;
  bool significant = false;  // the interval excludes 1
  bool interval_known = false;
  // Of several starts (baseline.h), of which the two runs are one each: how many, and how the pace of the steps compares
  // that nothing disturbed. The speedup is then that of their means.
  size_t starts = 1, new_starts = 1;
  std::optional<Ratio> undisturbed;
  std::vector<Change> shares;     // that changed by one percentage point or more; largest change first
  std::vector<Change> resources;  // those that findings cite first, then those nearly used up, then by change
  std::vector<Change> facts;
  std::vector<Change>
      logged;  // by the scripts: where both are at the same step, then at their ends; never judged
  std::vector<std::string> findings_gone, findings_new;
  Prediction prediction = Prediction::kNone;
  std::optional<Speedup> predicted;        // unless there was none
  std::string advised;                     // the change that it was predicted for, in code or in words
  std::vector<std::string> other_changes;  // names of the facts that differ besides
};

// `moves`: of the shares, where they are known.
Comparison Compare(const Diagnosis& before, const Diagnosis& after, const ShareMoves& moves = {});

}  // namespace fullbore::diagnose
