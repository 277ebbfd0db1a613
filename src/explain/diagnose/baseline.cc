#include "explain/diagnose/baseline.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/statistics.h"
#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

namespace {

constexpr double kUndisturbed =
    0.1;  // of the steps: a few in a hundred would be what the clock and chance make
constexpr size_t kFewestSteps = 100;  // for a tenth of them to be ten

double MeanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

std::optional<double> UndisturbedPace(const record::Recording& recording, const Diagnosis& diagnosis) {
  const record::Stage* judged = JudgedStage(recording, diagnosis.stage);
  if (!judged || diagnosis.steps_per_s <= 0) return std::nullopt;
  const View view(recording, *judged);
  if (!view.HasSteps() || view.lead().steady.size() < kFewestSteps) return std::nullopt;
  std::vector<double> wall_ns;
  for (const record::Step* step : view.lead().steady) wall_ns.push_back(static_cast<double>(step->wall_ns));
  const double steps_per_s = 1e9 / Quantile(std::move(wall_ns), kUndisturbed);
  return diagnosis.samples_per_s ? steps_per_s * *diagnosis.samples_per_s / diagnosis.steps_per_s
                                 : steps_per_s;
}

std::optional<Ratio> RatioToStarts(const std::vector<double>& ratios, StudentT student) {
  if (ratios.size() < kFewestStarts) return std::nullopt;
  std::vector<double> logs;
  for (const double ratio : ratios) logs.push_back(std::log(ratio));
  const auto count = static_cast<double>(logs.size());
  const double mean = MeanOf(logs);
  double squares = 0;
  for (const double each : logs) squares += (each - mean) * (each - mean);
  // The new start differs from their mean by its own chance, and by that of the mean.
  const double half = student(logs.size() - 1) * std::sqrt(squares / (count - 1) * (1 + 1 / count));
  return Ratio{std::exp(mean), std::exp(mean - half), std::exp(mean + half)};
}

void HoldAgainstStarts(const std::vector<double>& throughputs, const std::vector<double>& paces,
                       Comparison& comparison) {
  comparison.starts = throughputs.size();
  const bool both = paces.size() >= kFewestStarts;
  comparison.undisturbed = RatioToStarts(paces, StudentT975);
  const auto ratio = RatioToStarts(throughputs, both ? StudentT975 : StudentT95);
  comparison.interval_known = ratio.has_value();
  if (!ratio) return;
  comparison.speedup = ratio->value;
  comparison.speedup_low = ratio->low;
  comparison.speedup_high = ratio->high;
  comparison.significant = ratio->low > 1 || ratio->high < 1;
}

}  // namespace fullbore::diagnose
