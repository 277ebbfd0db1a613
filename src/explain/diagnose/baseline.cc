#include "explain/diagnose/baseline.h"

#include <cmath>
#include <utility>

#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/statistics.h"
#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

namespace {

constexpr double kUndisturbed = 0.02;  // of the steps: as few as are not chance's and the clock's alone
constexpr size_t kFewestSteps = 200;   // for a fiftieth of them to be some

struct Group {
  double count = 0, mean = 0, squares = 0;  // the latter: of what its members differ from the mean
};

Group LogarithmsOf(const std::vector<double>& values) {
  Group group;
  for (const double value : values) {
    const double differs = std::log(value) - group.mean;
    group.mean += differs / ++group.count;
    group.squares += differs * (std::log(value) - group.mean);
  }
  return group;
}

}  // namespace

std::optional<double> GainUndisturbed(const record::Recording& recording, const Diagnosis& diagnosis) {
  const record::Stage* judged = JudgedStage(recording, diagnosis.stage);
  if (!judged || diagnosis.steps_per_s <= 0) return std::nullopt;
  const View view(recording, *judged);
  if (!view.HasSteps() || view.lead().steady.size() < kFewestSteps) return std::nullopt;
  std::vector<double> wall_ns;
  for (const record::Step* step : view.lead().steady) wall_ns.push_back(static_cast<double>(step->wall_ns));
  return 1e9 / Quantile(std::move(wall_ns), kUndisturbed) / diagnosis.steps_per_s;
}

std::optional<Ratio> RatioOfStarts(const std::vector<double>& before, const std::vector<double>& after,
                                   StudentT student) {
  if (before.size() < kFewestStarts || after.empty()) return std::nullopt;
  const Group a = LogarithmsOf(before), b = LogarithmsOf(after);
  const size_t freedom = before.size() + after.size() - 2;
  const double variance = (a.squares + b.squares) / static_cast<double>(freedom);
  const double half = student(freedom) * std::sqrt(variance * (1 / a.count + 1 / b.count));
  const double differs = b.mean - a.mean;
  return Ratio{std::exp(differs), std::exp(differs - half), std::exp(differs + half)};
}

void HoldAgainstStarts(const Starts& throughputs, const Starts& paces, Comparison& comparison) {
  comparison.starts = throughputs.before.size();
  comparison.new_starts = throughputs.after.size();
  comparison.undisturbed = RatioOfStarts(paces.before, paces.after, StudentT975);
  const auto ratio =
      RatioOfStarts(throughputs.before, throughputs.after, comparison.undisturbed ? StudentT975 : StudentT95);
  comparison.interval_known = ratio.has_value();
  if (!ratio) return;
  comparison.speedup = ratio->value;
  comparison.speedup_low = ratio->low;
  comparison.speedup_high = ratio->high;
  comparison.significant = ratio->low > 1 || ratio->high < 1;
}

}  // namespace fullbore::diagnose
