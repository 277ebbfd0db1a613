// worker-overcommit: far more loader workers than the training can use. They cost memory, start-up time in
// every epoch, and cores that the training thread itself needs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/recorded_pipeline.h"

namespace fullbore::diagnose {

using record::Loader;
using record::Metric;
using record::Share;

std::optional<Finding> JudgeWorkerOvercommit(const View& view, Diagnosis& /*diagnosis*/) {
  const RankView& rank = view.lead();
  const Loader* loader = rank.TrainingLoader();
  auto pipeline = RecordedPipeline(view);
  const auto shm_used = view.Max(Metric::kShmUsed), shm_total = view.Max(Metric::kShmTotal);
  const bool shm_full = shm_used && shm_total && *shm_total > 0 && *shm_used / *shm_total > kShmNearFull;
  if (!loader || !pipeline || loader->num_workers < 2) return std::nullopt;

  // The work of a fetch, without the waits for a core that so many workers cause each other.
  const double contention = static_cast<double>(loader->run_delay_ns) / static_cast<double>(loader->fetch_ns);
  for (double& ns : pipeline->fetch_ns) ns *= 1 - std::min(contention, 0.95);
  const int64_t needed = replay::FewestWorkers(*pipeline, loader->num_workers);
  if (static_cast<double>(loader->num_workers) < kOvercommit * static_cast<double>(needed) ||
      loader->num_workers < needed + 2)
    return std::nullopt;

  Finding finding;
  const EvidenceBuilder evidence(finding);
  const double restart = EpochStartShare(rank, *loader);
  const auto severity = SeverityOf(restart, kDataWait, rank.steps);
  finding.severity = shm_full ? Severity::kCritical : severity.value_or(Severity::kInfo);
  finding.share = restart;
  // Waiting at the start of an epoch is its symptom.
  finding.supersedes = {{"input-bound", "epoch-start"}};
  finding.title = fmt::format("{} loader workers where {} would do", loader->num_workers, needed);
  if (restart >= kDataWait.warning) {
    finding.title +=
        fmt::format(": starting them at each epoch takes {} of the time.", FormatPercent(restart));
  } else {
    finding.title += contention > kPartOfFetch ? fmt::format(": they spend {} of a fetch waiting for a core.",
                                                             FormatPercent(contention))
                                               : ": they cost memory and gain nothing.";
  }
  finding.change = fmt::format("DataLoader(num_workers={})", needed);
  finding.fix = {fmt::format("DataLoader(num_workers={})", needed)};
  if (!loader->persistent_workers && loader->restarts > 0)
    finding.fix.push_back("keep them between epochs: persistent_workers=True");
  if (const Place made = PlaceOf(loader->where); !made.file.empty() && IsPlaceToEdit(made.file))
    finding.where.push_back(made);
  evidence.FromHook("loader workers", static_cast<double>(loader->num_workers), "count");
  evidence.FromReplay("workers that keep up with the training", static_cast<double>(needed), "count");
  evidence.FromMachine("cores", view.cores(), "count");
  evidence.FromHook("part of a fetch spent waiting for a free core", contention, "ratio");
  if (loader->restarts > 0) {
    evidence.FromHook(
        "wait at the start of an epoch",
        static_cast<double>(loader->restart_wait_ns) / static_cast<double>(loader->restarts) / 1e6, "ms");
  }
  evidence.FromMetric(Metric::kProcessMemory, "memory of all workers",
                      view.Max(Metric::kProcessMemory, {{"role", "loader"}}));
  if (shm_full) evidence.FromMetric(Metric::kShmUsed, "/dev/shm in use", *shm_used / *shm_total, "ratio");
  // Starting takes time in proportion to the number of workers.
  const double saved = restart * (1 - static_cast<double>(needed) / static_cast<double>(loader->num_workers));
  finding.speedup = RemovalOf(saved, 0.5);
  finding.costs = replay::Cost::kNothing;
  finding.method = "epoch starts shortened in proportion to the workers; at the low end, by half of that";
  return finding;
}

}  // namespace fullbore::diagnose
