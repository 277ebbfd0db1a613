#include "serve/run_order.h"

#include <algorithm>
#include <functional>

namespace fullbore::serve {

namespace {

double RateOf(const watch::KnownRun& run) {
  if (!run.judgement) return 0;
  return run.judgement->samples_per_s.value_or(run.judgement->steps_per_s);
}

using Key = std::function<double(const NamedRun&)>;

Key KeyOf(const std::string& by) {
  if (by == "begin")
    return [](const NamedRun& run) { return static_cast<double>(run.second->summary.wall_begin_ns); };
  if (by == "duration")
    return [](const NamedRun& run) { return static_cast<double>(DurationNs(*run.second)); };
  if (by == "steps")
    return [](const NamedRun& run) { return static_cast<double>(run.second->summary.steps); };
  if (by == "throughput") return [](const NamedRun& run) { return RateOf(*run.second); };
  if (by == "waste") return [](const NamedRun& run) { return WasteOf(*run.second); };
  return nullptr;
}

}  // namespace

int64_t DurationNs(const watch::KnownRun& run) {
  int64_t ns = 0;
  for (const record::Stage& stage : run.summary.stages) ns += stage.end_ns - stage.begin_ns;
  return ns;
}

double WasteOf(const watch::KnownRun& run) {
  return run.judgement && run.judgement->speedup > 1 ? 1 - 1 / run.judgement->speedup : 0;
}

bool SortRuns(std::vector<NamedRun>& runs, std::string by) {
  const bool down = by.starts_with('-');
  if (down) by = by.substr(1);
  const auto sort = [&](const auto& is_before) {
    std::ranges::stable_sort(
        runs, [&](const NamedRun& a, const NamedRun& b) { return down ? is_before(b, a) : is_before(a, b); });
    return true;
  };
  if (by == "name") return sort([](const NamedRun& a, const NamedRun& b) { return a.first < b.first; });
  const Key key = KeyOf(by);
  return key && sort([&](const NamedRun& a, const NamedRun& b) { return key(a) < key(b); });
}

}  // namespace fullbore::serve
