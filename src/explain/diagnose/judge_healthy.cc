// healthy: no other finding costs much. Names what limits such a run, its narrowest pipe.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge.h"

namespace fullbore::diagnose {

using record::Metric;
using record::Share;

bool NothingCostsMuch(const Diagnosis& diagnosis) {
  return std::ranges::all_of(diagnosis.findings, [](const Finding& finding) {
    return finding.of_others || (finding.severity == Severity::kInfo && finding.share < kHealthy);
  });
}

std::optional<Finding> JudgeHealthy(const View& view, Diagnosis& diagnosis) {
  if (!NothingCostsMuch(diagnosis)) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  const bool on_gpu = view.has_gpu() || view.lead().info->device_activity;
  const double waiting = view.lead().Ratio(Share::kDataWait);
  finding.title = fmt::format("Healthy: nothing costs more than {}; the {} is the narrowest pipe.",
                              FormatPercent(kHealthy), on_gpu ? "GPU's own work" : "computation on the CPU");
  evidence.FromHook("waiting for data", waiting, "ratio");
  evidence.FromMetric(Metric::kGpuUtilization, "GPU utilisation", view.Mean(Metric::kGpuUtilization));
  evidence.FromMetric(Metric::kCpuUtilization, "CPU in use", view.Mean(Metric::kCpuUtilization));
  finding.fix = {on_gpu ? "to go faster now: a faster GPU, or less work per sample (precision, model)"
                        : "to go faster now: more or faster cores, or a GPU"};
  return finding;
}

}  // namespace fullbore::diagnose
