// host-memory: the run is short of memory, so pages that it keeps needing are evicted and read back.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge.h"

namespace fullbore::diagnose {

using record::Metric;
using record::Share;

namespace {

constexpr int kBusError = 128 + 7;  // as a shell reports SIGBUS
constexpr double kSmallShm = 1e9;   // a container's default is 64 MB; a machine's is half of its memory
constexpr double kShmHalfFull = 0.5;

// A run that ended because a loader's worker found no room in /dev/shm: a write to a page that the file system cannot
// give ends a process by a bus error.
std::optional<Finding> SharedMemoryRanOut(const View& view) {
  const record::Loader* loader = view.lead().TrainingLoader();
  const auto& exit_status = view.stage().exit_status;
  const bool bus_error = view.Fact("worker_killed_by") == "Bus error" || exit_status == kBusError;
  double used = 0, total = 0;
  for (const record::Series& series : view.stage().series) {
    for (const record::Reading& reading : series.readings) {
      if (IsOf(series.key, Metric::kShmUsed)) used = std::max(used, reading.value);
      if (IsOf(series.key, Metric::kShmTotal)) total = std::max(total, reading.value);
    }
  }
  if (!bus_error || !loader || loader->num_workers == 0 || total <= 0) return std::nullopt;
  if (total > kSmallShm && used < kShmHalfFull * total) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.cause = "shared-memory";
  finding.severity = Severity::kCritical;
  finding.share = 1;
  finding.stands_still = true;
  finding.title = fmt::format(
      "A bus error ended the run: /dev/shm, through which {} loader worker{} hand{} over batches, holds {} "
      "only.",
      loader->num_workers, loader->num_workers == 1 ? "" : "s", loader->num_workers == 1 ? "s" : "",
      FormatBytes(total));
  finding.fix = {
      "give the container more: docker run --shm-size=8g, or --ipc=host; Kubernetes: an emptyDir with "
      "medium: "
      "Memory at /dev/shm",
      "or hold fewer batches there: a smaller prefetch_factor, fewer workers, smaller batches"};
  evidence.FromMetric(Metric::kShmTotal, "/dev/shm holds", total);
  evidence.FromMetric(Metric::kShmUsed, "the most that was seen in use, once a second", used);
  return finding;
}

}  // namespace

std::optional<Finding> JudgeHostMemory(const View& view, Diagnosis& diagnosis) {
  if (auto ran_out = SharedMemoryRanOut(view)) return ran_out;
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
