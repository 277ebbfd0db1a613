#include "serve/shown_run.h"

#include <malloc.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/printable.h"
#include "explain/diagnose/diagnose.h"
#include "report/html.h"
#include "report/thin.h"

namespace fullbore::serve {

namespace {

constexpr size_t kKept = 8;
constexpr int64_t kPausePerCost = 150;
constexpr size_t kPointsOfACurve = 300;

double FourDigits(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

ShownRun::Curve CurveOf(const report::Explained& explained) {
  ShownRun::Curve curve;
  const record::Stage* stage = diagnose::JudgedStage(explained.recording, explained.verdict().stage);
  if (!stage || stage->ranks.empty()) return curve;
  const record::RankInfo& rank = stage->ranks.front();
  curve.unit = rank.samples_known ? "samples/s" : "steps/s";
  for (const record::StepWindow& window : report::Merge(rank.windows, kPointsOfACurve)) {
    int64_t wall_ns = 0;
    for (const int64_t share_ns : window.share_ns) wall_ns += share_ns;
    if (window.steps == 0 || wall_ns <= 0) continue;
    const double seconds = static_cast<double>(wall_ns) / 1e9;
    curve.step.push_back(window.first_step + window.steps / 2);
    const auto done = static_cast<double>(rank.samples_known ? window.samples : window.steps);
    curve.rate.push_back(FourDigits(done / seconds));
    curve.step_ms.push_back(FourDigits(seconds * 1e3 / static_cast<double>(window.steps)));
  }
  return curve;
}

}  // namespace

Result<std::shared_ptr<const ShownRun>> ShownRuns::Get(const std::string& name, const watch::KnownRun& run,
                                                       int64_t now_ns) {
  const bool live = run.state == watch::RunState::kRunning;
  const auto known = std::ranges::find_if(kept_, [&](const Kept& each) { return each.run->name == name; });
  if (known != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, known);
    if (known->run->stamp == run.stamp || (live && now_ns < known->fresh_until_ns)) return known->run;
    kept_.pop_front();
  }
  const int64_t before_ns = ThreadCpuNs();
  const auto explained = explain_(run.summary.path);
  if (!explained) return explained.error();
  const auto shared = [](std::string text) { return std::make_shared<const std::string>(std::move(text)); };
  auto shown = std::make_shared<ShownRun>();
  shown->name = name;
  shown->stamp = run.stamp;
  shown->report =
      shared(PrintableJson(
                 report::ToJson(*explained).dump(2, ' ', false, nlohmann::json::error_handler_t::replace)) +
             "\n");
  shown->page = shared(report::PageJson(explained->verdict(), explained->recording));
  shown->verdict = explained->verdict();
  shown->curve = CurveOf(*explained);
  malloc_trim(0);
  kept_.push_front({shown, now_ns + kPausePerCost * (ThreadCpuNs() - before_ns)});
  if (kept_.size() > kKept) kept_.pop_back();
  return std::shared_ptr<const ShownRun>(shown);
}

}  // namespace fullbore::serve
