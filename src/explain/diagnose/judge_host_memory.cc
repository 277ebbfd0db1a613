// host-memory: the run is short of memory, so pages that it keeps needing are evicted and read back.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge.h"

namespace fullbore::diagnose {

using record::Metric;
using record::Share;

std::optional<Finding> JudgeHostMemory(const View& view, Diagnosis& diagnosis) {
  const RankView& rank = view.lead();
  const auto stalled = view.Mean(Metric::kPsiMemorySome);
  const auto used = view.Max(Metric::kCgroupMemoryUsed), limit = view.Max(Metric::kCgroupMemoryLimit);
  const auto swap_used = view.Max(Metric::kSwapUsed);
  const auto faults = view.Mean(Metric::kMajorFaults);
  const double filled = used && limit && *limit > 0 ? *used / *limit : 0;
  const bool is_at_limit = filled > kMemoryNearLimit;
  const bool pressed = stalled && *stalled >= (is_at_limit ? kMemoryPressureAtLimit : kMemoryPressure);
  if (!stalled && !limit && view.recording().source == "run") {
    diagnosis.not_judged.push_back({"host-memory", "neither memory pressure nor a memory limit could be read",
                                    "a kernel with PSI (CONFIG_PSI, boot option psi=1)"});
  }
  if (!pressed) return std::nullopt;

  Finding finding;
  const EvidenceBuilder evidence(finding);
  // Waiting for storage is its symptom.
  finding.supersedes = {{"input-bound", "storage"}, {"input-bound", "slow-sample"}};
  // The stall shows in the step wherever pages are missing: in the wait for the loader if it is the loader's
  // files that are evicted.
  const Finding* input = FindingWithId(diagnosis, "input-bound");
  const bool behind_input = input && (input->cause == "storage" || input->cause == "slow-sample");
  finding.share = behind_input ? input->share : std::min(*stalled, 1 - rank.Ratio(Share::kDataWait));
  finding.severity = SeverityOf(finding.share, kDataWait, rank.steps).value_or(Severity::kWarning);
  finding.title = fmt::format("Memory is short: tasks stall {} of the time while evicted pages are read back",
                              FormatPercent(*stalled));
  if (is_at_limit) {
    finding.title += fmt::format(" (the limit of {} is reached).", FormatBytes(*limit));
  } else {
    finding.title += ".";
  }
  finding.fix = {
      "raise the memory limit of the container or job, or use fewer loader workers: each holds a copy of the "
      "dataset object",
      "keep large data in shared arrays (numpy.memmap, torch.Tensor.share_memory_) instead of Python lists",
      "a smaller prefetch_factor; fewer samples cached in memory"};
  evidence.FromMetric(Metric::kPsiMemorySome, "some task stalled on memory", *stalled);
  evidence.FromMetric(Metric::kCgroupMemoryLimit, "memory limit", limit);
  evidence.FromMetric(Metric::kCgroupMemoryUsed, "peak memory in use", used);
  evidence.FromMetric(Metric::kMajorFaults, "pages read back from disk", faults, "1/s");
  if (swap_used && *swap_used > 0) evidence.FromMetric(Metric::kSwapUsed, "peak swap in use", *swap_used);
  finding.where = behind_input ? input->where : view.HottestLines(Share::kHostOther);
  finding.speedup = behind_input ? input->speedup : RemovalOf(finding.share, 0.5);
  finding.method = "the stalls removed";
  return finding;
}

}  // namespace fullbore::diagnose
