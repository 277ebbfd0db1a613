// worker-overcommit: far more loader workers than the training can use. They cost memory, start-up time at
// every epoch, and cores that the training thread needs itself.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "explain/diagnose/judge.h"
#include "explain/diagnose/replay.h"

namespace fullbore::diagnose {

using record::Loader;
using record::Metric;
using record::Share;

void JudgeWorkers(const View& view, Diagnosis& diagnosis) {
  const RankView& rank = view.lead();
  const Loader* loader = rank.TrainingLoader();
  auto pipeline = RecordedPipeline(view);
  const auto shm_used = view.Max(Metric::kShmUsed), shm_total = view.Max(Metric::kShmTotal);
  const bool shm_full = shm_used && shm_total && *shm_total > 0 && *shm_used / *shm_total > kShmNearFull;
  if (!loader || !pipeline || loader->num_workers < 2) return;

  // The work of a fetch without the wait for a core that so many workers cause themselves.
  const double contention = static_cast<double>(loader->run_delay_ns) / static_cast<double>(loader->fetch_ns);
  for (double& ns : pipeline->fetch_ns) ns *= 1 - std::min(contention, 0.95);
  const int64_t needed = FewestWorkers(*pipeline, loader->num_workers);
  if (static_cast<double>(loader->num_workers) < kOvercommit * static_cast<double>(needed) ||
      loader->num_workers < needed + 2)
    return;

  Finding finding;
  finding.id = "worker-overcommit";
  const double restart = EpochStartShare(rank, *loader);
  const auto severity = SeverityOf(restart, kDataWait, rank.steps);
  finding.severity = shm_full ? Severity::kCritical : severity.value_or(Severity::kInfo);
  finding.share = restart;
  finding.title = fmt::format("{} loader workers where {} would do", loader->num_workers, needed);
  if (restart >= kDataWait.warning) {
    finding.title +=
        fmt::format(": starting them at each epoch takes {} of the time.", FormatPercent(restart));
  } else {
    finding.title += contention > kPartOfFetch ? fmt::format(": they spend {} of a fetch waiting for a core.",
                                                             FormatPercent(contention))
                                               : ": they cost memory and bring nothing.";
  }
  finding.change = fmt::format("DataLoader(num_workers={})", needed);
  finding.fix = {fmt::format("DataLoader(num_workers={})", needed)};
  if (!loader->persistent_workers && loader->restarts > 0)
    finding.fix.push_back("keep them between epochs: persistent_workers=True");
  if (!loader->where.empty()) finding.where.push_back(PlaceOf(loader->where));
  auto& evidence = finding.evidence;
  evidence.push_back(
      {"loader workers", static_cast<double>(loader->num_workers), "count", "hook", "", {}, {}});
  evidence.push_back(
      {"workers that keep up with the training", static_cast<double>(needed), "count", "replay", "", {}, {}});
  evidence.push_back({"cores", view.cores(), "count", "proc", "", {}, {}});
  evidence.push_back({"of a fetch waiting for a free core", contention, "ratio", "hook", "", {}, {}});
  if (loader->restarts > 0) {
    evidence.push_back(
        {"wait at the start of an epoch",
         static_cast<double>(loader->restart_wait_ns) / static_cast<double>(loader->restarts) / 1e6,
         "ms",
         "hook",
         "",
         {},
         {}});
  }
  if (const auto memory = view.Max(Metric::kProcessMemory, {{"role", "loader"}})) {
    evidence.push_back({"memory of all workers", *memory, "bytes", "proc", "process_memory", {}, {}});
  }
  if (shm_full)
    evidence.push_back({"/dev/shm in use", *shm_used / *shm_total, "ratio", "proc", "shm_used", {}, {}});
  // Starting takes time in proportion to the number of workers.
  const double saved = restart * (1 - static_cast<double>(needed) / static_cast<double>(loader->num_workers));
  finding.speedup = RemovalOf(saved, 0.5);
  finding.method = "epoch starts shortened in proportion to the workers; at the low end, by half of that";
  // One cause, named once: waiting at the start of an epoch is its symptom.
  std::erase_if(diagnosis.findings,
                [](const Finding& f) { return f.id == "input-bound" && f.cause == "epoch-start"; });
  diagnosis.findings.push_back(std::move(finding));
}

}  // namespace fullbore::diagnose
