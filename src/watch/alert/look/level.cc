// A finding's share, and the level of a series.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "record/metrics.h"
#include "watch/alert/sight.h"

namespace fullbore::watch {

namespace {

constexpr int64_t kFewestSteps = 5;  // of which a share says something
constexpr double kMargin = 0.1;      // of the threshold: an alert is over only beyond it

Sight::State StateOf(double value, Side side, double level) {
  const double above = side == Side::kAbove ? value - level : level - value;
  if (above > 0) return Sight::State::kHolds;
  return above < -kMargin * std::abs(level) || level == 0 ? Sight::State::kOver : Sight::State::kBetween;
}

}  // namespace

Sight FindingShare::Look(const View& view) const {
  const diagnose::Diagnosis& diagnosis = view.moment.DiagnosisOf(view.window_ns);
  const bool trained = view.moment.past().steps() > 0;
  if (trained && diagnosis.steps < kFewestSteps) return {};
  const auto finding = std::ranges::find(diagnosis.findings, id, &diagnose::Finding::id);
  Sight sight;
  if (finding == diagnosis.findings.end()) {
    sight.state = Sight::State::kOver;
    sight.what = "the finding " + id + " is gone";
    return sight;
  }
  sight.state = StateOf(finding->share, Side::kAbove, above);
  sight.what = finding->title;
  sight.evidence = finding->evidence;
  sight.fix = finding->fix;
  if (!finding->change.empty()) sight.fix.insert(sight.fix.begin(), finding->change);
  sight.lost = std::clamp(finding->share, 0.0, 1.0);
  return sight;
}

Sight SeriesLevel::Look(const View& view) const {
  const record::Series* worst = nullptr;
  double worst_mean = 0;
  for (const record::Series& series : view.moment.stage().series) {
    const bool labelled = std::ranges::all_of(labels, [&](const auto& label) {
      const auto found = series.key.labels.find(label.first);
      return found != series.key.labels.end() && found->second == label.second;
    });
    if (series.key.name != name || !labelled || !view.moment.IsOurs(series.key)) continue;
    const auto mean = view.moment.Mean(series, view.window_ns);
    if (!mean || (worst && (side == Side::kAbove ? *mean <= worst_mean : *mean >= worst_mean))) continue;
    worst = &series;
    worst_mean = *mean;
  }
  if (!worst) return {};
  Sight sight;
  sight.state = StateOf(worst_mean, side, level);
  const std::string called = record::LabelledName(worst->key), unit = worst->key.unit;
  sight.what = fmt::format("{} is {}, {} {}", called, FormatQuantity(worst_mean, unit),
                           side == Side::kAbove ? "above" : "below", FormatQuantity(level, unit));
  if (sight.state != Sight::State::kHolds)
    sight.what = fmt::format("{} is {}", called, FormatQuantity(worst_mean, unit));
  sight.evidence.push_back({called, worst_mean, unit, "", called, {}, {}});
  return sight;
}

}  // namespace fullbore::watch
