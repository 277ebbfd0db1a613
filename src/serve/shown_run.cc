#include "serve/shown_run.h"

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/printable.h"
#include "base/text.h"
#include "explain/diagnose/diagnose.h"
#include "report/html.h"
#include "report/thin.h"

namespace fullbore::serve {

namespace {

constexpr size_t kKept = 16;  // more than one comparison shows
constexpr int64_t kFailedForNs = kNsPerSecond, kGivenUpForNs = 300 * kNsPerSecond;
constexpr int64_t kPausePerCost = 150;
constexpr size_t kPointsOfACurve = 300;
constexpr size_t kLoggedCurves = 8;

double FourDigits(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

std::vector<ShownRun::Curve::Logged> LoggedCurves(const diagnose::Diagnosis& run) {
  std::vector<ShownRun::Curve::Logged> curves;
  for (const diagnose::LoggedMetric& metric : run.logged) {
    if (metric.points.size() < 2) continue;
    if (curves.size() == kLoggedCurves) break;
    ShownRun::Curve::Logged& curve = curves.emplace_back();
    curve.name = metric.name;
    for (const diagnose::LoggedPoint& point : metric.points) {
      curve.step.push_back(point.step);
      curve.value.push_back(FourDigits(point.value));
    }
  }
  return curves;
}

ShownRun::Curve CurveOf(const report::Explained& explained) {
  ShownRun::Curve curve;
  const record::Stage* stage = diagnose::JudgedStage(explained.recording, explained.verdict().stage);
  if (!stage || stage->ranks.empty()) return curve;
  const record::RankInfo& rank = stage->ranks.front();
  const auto has_samples = [](const record::StepWindow& window) { return window.samples > 0; };
  const bool counts =
      rank.samples_known && std::ranges::any_of(rank.windows, has_samples);  // marks count none
  curve.unit = counts ? "samples/s" : "steps/s";
  for (const record::StepWindow& window : report::Merge(rank.windows, kPointsOfACurve)) {
    int64_t wall_ns = 0;
    for (const int64_t share_ns : window.share_ns) wall_ns += share_ns;
    if (window.steps == 0 || wall_ns <= 0) continue;
    const double seconds = static_cast<double>(wall_ns) / 1e9;
    curve.step.push_back(window.first_step + window.steps / 2);
    const auto done = static_cast<double>(counts ? window.samples : window.steps);
    curve.rate.push_back(FourDigits(done / seconds));
    curve.step_ms.push_back(FourDigits(seconds * 1e3 / static_cast<double>(window.steps)));
  }
  curve.logged = LoggedCurves(explained.verdict());
  return curve;
}

}  // namespace

void ShownRuns::Make(const Explain& explain, const std::string& path, Making& making) {
  const int64_t before_ns = ThreadCpuNs();
  const auto explained = explain(path);
  if (!explained) {
    making.error = explained.error();
    return;
  }
  const auto shared = [](std::string text) { return std::make_shared<const std::string>(std::move(text)); };
  auto shown = std::make_shared<ShownRun>();
  shown->name = making.name;
  shown->stamp = making.stamp;
  shown->report =
      shared(PrintableJson(
                 report::ToJson(*explained).dump(2, ' ', false, nlohmann::json::error_handler_t::replace)) +
             "\n");
  shown->page = shared(report::PageJson(explained->verdict(), explained->recording));
  shown->verdict = explained->verdict();
  shown->curve = CurveOf(*explained);
  malloc_trim(0);
  making.run = std::move(shown);
  making.cpu_ns = ThreadCpuNs() - before_ns;
}

// What the thread has made, if it has.
void ShownRuns::Take(int64_t now_ns, int64_t wait_ns) {
  if (!making_) return;
  const SideThread::State state = side_.Poll(wait_ns);
  if (state == SideThread::State::kBusy) return;
  const std::shared_ptr<Making> made = std::exchange(making_, nullptr);
  if (state == SideThread::State::kDone && made->run) {
    kept_.push_front({made->run, now_ns + kPausePerCost * made->cpu_ns});
    if (kept_.size() > kKept) kept_.pop_back();
    return;
  }
  Failed failed{made->name, made->stamp, {}, now_ns + kFailedForNs};
  if (state == SideThread::State::kDone && made->error) {
    failed.error = *made->error;
  } else {
    const std::string limit = FormatDuration(side_.limit_ns());
    failed.error = {ErrorCode::kUnsupported, "run '" + made->name + "' could not be judged in " + limit,
                    "`fullbore explain` takes as long as it needs"};
    failed.until_ns = now_ns + kGivenUpForNs;
  }
  failed_.push_front(std::move(failed));
  if (failed_.size() > kKept) failed_.pop_back();
}

// The run, or why there will be none; nothing if it has to be made.
std::optional<Result<ShownRuns::Shown>> ShownRuns::Answer(const std::string& name, const watch::KnownRun& run,
                                                          int64_t now_ns) {
  const bool live = run.state == watch::RunState::kRunning;
  const auto known = std::ranges::find_if(kept_, [&](const Kept& each) { return each.run->name == name; });
  if (known != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, known);
    if (known->run->stamp == run.stamp || (live && now_ns < known->fresh_until_ns))
      return Result<Shown>(known->run);
    kept_.pop_front();
  }
  std::erase_if(failed_, [&](const Failed& each) { return each.until_ns < now_ns; });
  for (const Failed& each : failed_) {
    if (each.name == name && each.stamp == run.stamp) return Result<Shown>(each.error);
  }
  return std::nullopt;
}

Result<ShownRuns::Shown> ShownRuns::Get(const std::string& name, const watch::KnownRun& run, int64_t now_ns) {
  Take(now_ns, 0);
  auto answer = Answer(name, run, now_ns);
  if (answer) return *answer;
  if (making_) return Shown();  // another one, or this one, is on its way
  auto making = std::make_shared<Making>();
  making->name = name;
  making->stamp = run.stamp;
  const auto make = [explain = explain_, path = run.summary.path, making] { Make(explain, path, *making); };
  if (!side_.Begin(make)) {
    (void)side_.Poll();
    return Error{ErrorCode::kUnavailable, "no run can be judged now, because one is stuck",
                 "try again later"};
  }
  making_ = std::move(making);
  Take(now_ns, waits_ns_);
  answer = Answer(name, run, now_ns);
  return answer ? *answer : Shown();
}

}  // namespace fullbore::serve
