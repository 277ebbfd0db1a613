#include "watch/alert/sight.h"

#include <algorithm>

#include "base/clock.h"
#include "explain/diagnose/diagnose.h"
#include "record/metrics.h"

namespace fullbore::watch {

using record::Metric;
using record::Reading;

namespace {

constexpr int64_t kLongestWindowNs = 60 * kNsPerSecond, kShortestWindowNs = 5 * kNsPerSecond;

// The newest stage, cut to what was recorded between two times.
record::Recording Cut(const record::Recording& from, int64_t begin_ns, int64_t end_ns) {
  record::Recording cut;
  cut.id = from.id;
  cut.source = from.source;
  cut.machine = from.machine;
  cut.wall_offset_ns = from.wall_offset_ns;
  const record::Stage& stage = from.stages.back();
  record::Stage& part = cut.stages.emplace_back();
  part.id = stage.id;
  part.name = stage.name;
  part.begin_ns = std::max(stage.begin_ns, begin_ns);
  part.end_ns = std::min(stage.end_ns, end_ns);
  const auto inside = [&](int64_t t_ns) { return t_ns > begin_ns && t_ns <= end_ns; };
  for (const record::RankInfo& rank : stage.ranks) {
    record::RankInfo& info = part.ranks.emplace_back(rank);
    std::erase_if(info.steps, [&](const record::Step& step) { return !inside(step.end_ns); });
    std::erase_if(info.windows, [&](const record::StepWindow& window) { return !inside(window.end_ns); });
  }
  for (const record::Series& series : stage.series) {
    const auto first = std::ranges::upper_bound(series.readings, begin_ns, {}, &Reading::t_ns);
    const auto last = std::ranges::upper_bound(series.readings, end_ns, {}, &Reading::t_ns);
    if (first < last) part.series.push_back({series.key, {first, last}});
  }
  return cut;
}

}  // namespace

bool Moment::ended() const {
  return cut_off_ || (stage().state == record::StageState::kEnded && now_ns_ >= stage().end_ns);
}

std::optional<double> Moment::Mean(const record::Series& series, int64_t ns) const {
  double sum = 0;
  int64_t count = 0;
  const auto first = std::ranges::upper_bound(series.readings, now_ns_ - ns, {}, &Reading::t_ns);
  for (auto reading = first; reading != series.readings.end() && reading->t_ns <= now_ns_; ++reading, ++count)
    sum += reading->value;
  return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

bool Moment::IsOurs(const record::SeriesKey& key) const {
  const auto gpu = key.labels.find("gpu");
  if (gpu == key.labels.end()) return true;
  bool owners_known = false;
  for (const record::Series& series : stage().series) {
    const auto owner = series.key.labels.find("owner"), of = series.key.labels.find("gpu");
    if (!IsOf(series.key, Metric::kGpuProcessMemory) || owner == series.key.labels.end() ||
        of == series.key.labels.end() || owner->second != "command")
      continue;
    const auto used = std::ranges::find_if(
        series.readings, [&](const Reading& r) { return r.value > 0 && r.t_ns <= now_ns_; });
    if (used == series.readings.end()) continue;
    if (of->second == gpu->second) return true;
    owners_known = true;
  }
  return !owners_known;
}

std::optional<double> Moment::CoresSince(int64_t since_ns) const {
  std::optional<double> cores;
  for (const record::Series& series : stage().series) {
    if (!IsOf(series.key, Metric::kProcessCpu) || series.key.labels.contains("rank")) continue;
    // A reading covers the time since the one before it: the first one is partly about what was before.
    const auto first = std::ranges::upper_bound(series.readings, since_ns, {}, &Reading::t_ns);
    if (first == series.readings.end() || first->t_ns > now_ns_) continue;
    if (const auto mean = Mean(series, now_ns_ - first->t_ns)) cores = cores.value_or(0) + *mean;
  }
  return cores;
}

const diagnose::Diagnosis& Moment::DiagnosisOf(int64_t ns) const {
  auto& known = diagnoses_[ns];
  if (!known) {
    known = std::make_shared<const diagnose::Diagnosis>(
        diagnose::Diagnose(Cut(*recording_, now_ns_ - ns, now_ns_), stage().name));
  }
  return *known;
}

int64_t WindowOf(const Rule& rule) { return std::clamp(rule.for_ns, kShortestWindowNs, kLongestWindowNs); }

Sight LookAt(const Rule& rule, const Moment& moment, std::optional<int64_t> since_ns) {
  const bool about_end = std::holds_alternative<RunFailed>(rule.condition);
  if (moment.ended() && !about_end) return {Sight::State::kOver, "the run has ended", {}, {}, {}, {}};
  const View view{moment, rule.for_ns, WindowOf(rule), since_ns};
  return std::visit([&](const auto& wanted) { return wanted.Look(view); }, rule.condition);
}

}  // namespace fullbore::watch
