// host-memory: the run is short of memory, so pages that it keeps needing are evicted and read back.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/kept_outputs.h"

namespace fullbore::diagnose {

using record::Metric;
using record::Share;

namespace {

constexpr char kKilled[] = "Killed";  // SIGKILL, in the C library's words

// A run that ended because the kernel, short of memory, killed a worker of its loader.
std::optional<Finding> WorkerWasKilled(const View& view) {
  const record::Loader* loader = view.lead().TrainingLoader();
  if (!view.stage().out_of_memory || view.Fact("worker_killed_by") != kKilled || !loader) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.cause = "worker-killed";
  finding.severity = Severity::kCritical;
  finding.share = 1;
  finding.stands_still = true;
  const auto workers = view.Max(Metric::kProcessMemory, {{"role", "loader"}});
  finding.title = fmt::format(
      "The kernel was out of memory and killed a worker of the loader, which ended the run{}.",
      workers ? fmt::format(": its {}",
                            loader->num_workers == 1
                                ? fmt::format("worker held {}", FormatBytes(*workers))
                                : fmt::format("{} workers held {} together, what they share counted in each",
                                              loader->num_workers, FormatBytes(*workers)))
              : "");
  finding.fix = {
      "fewer workers, a smaller prefetch_factor or smaller batches; or more memory for the container or job",
      "keep what the dataset holds in NumPy or Arrow arrays, not in lists of Python objects: reading one "
      "writes its reference count, and the worker's copy grows"};
  evidence.FromMetric(Metric::kProcessMemory, "memory of all workers, shared pages counted in each", workers);
  evidence.FromMetric(Metric::kProcessPss, "their part of it",
                      view.Max(Metric::kProcessPss, {{"role", "loader"}}));
  evidence.FromMetric(Metric::kCgroupMemoryLimit, "memory limit", view.Max(Metric::kCgroupMemoryLimit));
  return finding;
}

}  // namespace

std::optional<Finding> JudgeHostMemory(const View& view, Diagnosis& diagnosis) {
  if (auto killed = WorkerWasKilled(view)) return killed;
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
  AdviseToKeepLess(view, false, limit ? limit : view.Max(Metric::kMemoryTotal), finding);
  finding.where = behind_input ? input->where : view.HottestLines(Share::kHostOther);
  finding.speedup = behind_input ? input->speedup : RemovalOf(finding.share, 0.5);
  finding.method = "the stalls removed";
  return finding;
}

}  // namespace fullbore::diagnose
