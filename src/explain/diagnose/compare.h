// What changed between two diagnoses, and whether the difference is outside the noise.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "explain/diagnose/diagnosis.h"

namespace fullbore::diagnose {

struct Change {
  std::string what;  // "data_wait", "cpu_utilization", "loader.num_workers"
  std::string unit;  // "ratio", "bytes", "" for facts
  std::optional<double> before, after;
  std::string before_text, after_text;  // of facts
};

struct Comparison {
  // Samples per second where both know it, else steps per second.
  std::string rate_unit;
  double rate_before = 0, rate_after = 0;
  double speedup = 1;                        // rate after, divided by rate before
  double speedup_low = 1, speedup_high = 1;  // 95 %; equal to speedup where a run was too short to tell
  bool significant = false;                  // the interval excludes 1
  bool interval_known = false;
  std::vector<Change> shares;     // that changed by one percentage point or more; largest change first
  std::vector<Change> resources;  // those that findings cite first, then those nearly used up, then by change
  std::vector<Change> facts;
  std::vector<std::string> findings_gone, findings_new;
  // How the first run's prediction for its first finding turned out, if its advice was followed.
  std::optional<Speedup> predicted;
  bool prediction_held = false;
};

Comparison Compare(const Diagnosis& before, const Diagnosis& after);

}  // namespace fullbore::diagnose
