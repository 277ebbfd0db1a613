// What the script logs itself (docs/logged.md): told as it is, beside throughput. No finding rests on it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"

namespace fullbore::diagnose {

inline constexpr char kLoggedFact[] = "logged";  // {metric: {"loggers": [...], counts}}, of a rank

// Of each metric that of the lowest rank that logs it: losses first, then in the order of their names.
std::vector<LoggedMetric> LoggedOf(const record::Stage& stage);

// The metrics that the script gives to this logger ("mlflow") itself.
std::vector<std::string> MetricsGivenTo(std::string_view logger, const record::RankInfo& rank);

// What the metric was around this step: the mean of what was logged in the last twentieth of the way there, or else
// the last value before. Nothing where nothing was logged by then.
std::optional<double> LevelAt(const LoggedMetric& metric, int64_t step);

// "0.4127", "3e-05"; empty where there is none.
std::string LoggedText(std::optional<double> value);

// A metric that several runs log, each around the last step that all of them have reached, and around its own last one.
struct LoggedTogether {
  std::string metric;
  int64_t step = 0;
  std::vector<std::optional<double>> there, at_end;  // one a run

  std::string WhereText() const;  // "loss at step 1,200"
  std::string EndText() const { return metric + " at its end"; }
};
std::vector<LoggedTogether> Together(const std::vector<const Diagnosis*>& runs);

}  // namespace fullbore::diagnose
