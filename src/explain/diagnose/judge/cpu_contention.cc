// cpu-contention: programs outside the command take the cores that it needs. Its figures then describe a
// shared machine, and comparing it with another run says little.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/noise.h"

namespace fullbore::diagnose {

using record::Metric;

std::optional<Finding> JudgeCpuContention(const View& view, Diagnosis& /*diagnosis*/) {
  const auto others = DoubtOf(view).contended_cores;
  if (!others || !view.HasSteps()) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.severity = Severity::kWarning;
  finding.of_others = true;
  finding.title =
      fmt::format("Other programs keep {} of {} cores busy: this run is slower than it would be alone.",
                  FormatCount(*others), FormatCount(view.cores()));
  finding.fix = {"find out which (top, sorted by CPU), and measure again when the machine is quiet",
                 "on a shared machine, ask for cores of your own (Slurm --cpus-per-task, a cpuset)"};
  evidence.FromMetric(Metric::kCpuUtilization, "CPU in use", view.Mean(Metric::kCpuUtilization));
  evidence.FromMachine("cores that other programs use", *others, "cores");
  evidence.FromMetric(Metric::kProcessCpu, "cores that this command uses", *view.CoresOfCommand());
  const record::Loader* loader = view.lead().TrainingLoader();
  if (loader && loader->fetch_ns > 0) {
    evidence.FromHook("part of a fetch spent waiting for a free core",
                      static_cast<double>(loader->run_delay_ns) / static_cast<double>(loader->fetch_ns),
                      "ratio");
  }
  return finding;
}

}  // namespace fullbore::diagnose
