#include "fleet/job_use.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace fullbore::fleet {

namespace {

constexpr int64_t kTooShortNs = 5 * kNsPerSecond;  // to be read, and to use anything that matters

int64_t LastedNs(const RunAccount& run) { return run.end_unix_ns - run.begin_unix_ns; }

template <typename Number>
bool AllKnow(const std::vector<RunAccount>& runs, std::optional<Number> Use::*used) {
  return std::ranges::all_of(
      runs, [&](const RunAccount& run) { return run.use.*used || LastedNs(run) < kTooShortNs; });
}

template <typename Number>
void TakeMore(const std::optional<Number>& more, std::optional<Number>& known) {
  if (known && more) known = std::max(*known, *more);
}

// The most of it that runs used at any moment, each as much as it ever did.
template <typename Number>
void TakeTogether(const std::vector<RunAccount>& runs, std::optional<Number> Use::*used, Use& use) {
  if (!AllKnow(runs, used)) return (use.*used).reset();
  std::vector<std::pair<int64_t, Number>> changes;  // at a moment, by so much; who ends makes room first
  for (const RunAccount& run : runs) {
    const std::optional<Number>& most = run.use.*used;
    TakeMore(most, use.*used);
    if (!most || run.use.sees_runs_within || run.end_unix_ns <= run.begin_unix_ns) continue;
    changes.emplace_back(run.begin_unix_ns, *most);
    changes.emplace_back(run.end_unix_ns, -*most);
  }
  std::ranges::sort(changes);
  Number now = 0;
  for (const auto& [unix_ns, change] : changes) TakeMore<Number>(now += change, use.*used);
}

// On average while the longest run was there: of each run for as long as that was.
double MeanCoresWhile(const RunAccount& longest, const std::vector<RunAccount>& runs) {
  double core_ns = 0;
  for (const RunAccount& run : runs) {
    const int64_t together_ns =
        std::min(run.end_unix_ns, longest.end_unix_ns) - std::max(run.begin_unix_ns, longest.begin_unix_ns);
    if (run.use.sees_runs_within || together_ns <= 0) continue;
    core_ns += run.use.cores_mean.value_or(0) * static_cast<double>(together_ns);
  }
  const auto ns = static_cast<double>(longest.end_unix_ns - longest.begin_unix_ns);
  const double own = longest.use.cores_mean.value_or(0);
  return ns > 0 ? std::max(own, core_ns / ns) : own;
}

}  // namespace

Use UseOfAll(const std::vector<RunAccount>& runs) {
  const RunAccount& longest = *std::ranges::max_element(runs, {}, LastedNs);
  Use use = longest.use;
  if (use.cores_mean) use.cores_mean = MeanCoresWhile(longest, runs);
  TakeTogether(runs, &Use::cores_p95, use);
  TakeTogether(runs, &Use::memory_peak_bytes, use);
  TakeTogether(runs, &Use::gpus_used, use);
  if (use.gpus_used && use.gpus_given) use.gpus_used = std::min(*use.gpus_used, *use.gpus_given);
  for (const RunAccount& run : runs) {
    TakeMore(run.use.time_used_ns, use.time_used_ns);
    use.restarts = std::max(use.restarts, run.use.restarts);
  }
  return use;
}

}  // namespace fullbore::fleet
