// cpu-contention: programs outside the command take the cores that it needs. Its figures are then those of a
// shared machine, and a comparison with another run says little.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/judge.h"

namespace fullbore::diagnose {

using record::Metric;

void JudgeCpu(const View& view, Diagnosis& diagnosis) {
  const auto others = view.CoresOfOthers(), busy = view.Mean(Metric::kCpuUtilization);
  if (!others || !busy || view.cores() <= 0 || !view.HasSteps()) return;
  if (*busy < kCpuSaturated || *others < kOthersBusy * view.cores()) return;
  Finding finding;
  finding.id = "cpu-contention";
  finding.severity = Severity::kWarning;
  finding.title =
      fmt::format("Other programs keep {} of {} cores busy: this run is slower than it would be alone.",
                  FormatCount(*others), FormatCount(view.cores()));
  finding.fix = {"look who it is (top, sort by CPU), and measure again when the machine is quiet",
                 "on a shared machine, ask for cores of your own (Slurm --cpus-per-task, a cpuset)"};
  finding.evidence.push_back({"CPU in use", *busy, "ratio", "proc", "cpu_utilization", {}, {}});
  finding.evidence.push_back({"cores that other programs use", *others, "cores", "proc", "", {}, {}});
  finding.evidence.push_back(
      {"cores that this command uses", *view.CoresOfCommand(), "cores", "proc", "process_cpu", {}, {}});
  const record::Loader* loader = view.lead().TrainingLoader();
  if (loader && loader->fetch_ns > 0) {
    finding.evidence.push_back(
        {"of a fetch waiting for a free core",
         static_cast<double>(loader->run_delay_ns) / static_cast<double>(loader->fetch_ns),
         "ratio",
         "hook",
         "",
         {},
         {}});
  }
  diagnosis.findings.push_back(std::move(finding));
}

}  // namespace fullbore::diagnose
