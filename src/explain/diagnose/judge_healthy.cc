// healthy: no other finding costs much. Names what limits such a run, its narrowest pipe.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge.h"
#include "explain/diagnose/program.h"

namespace fullbore::diagnose {

using record::Metric;
using record::Share;

bool NothingCostsMuch(const Diagnosis& diagnosis) {
  return std::ranges::all_of(diagnosis.findings, [](const Finding& finding) {
    return finding.of_others || (finding.severity == Severity::kInfo && finding.share < kHealthy);
  });
}

namespace {

// "the device works 94 % of the time at 61 % of what it could do: at its limit a step would take 88 ms"; nothing
// where a trace has no shapes or the device is not known.
std::optional<std::string> OfTheDevice(const RankView& rank) {
  if (!rank.info->roofline || !rank.info->roofline->steps) return std::nullopt;
  const record::RooflineSteps& steps = *rank.info->roofline->steps;
  if (!steps.floor_ns || steps.device_ns <= 0 || steps.steps <= 0) return std::nullopt;
  return fmt::format(
      "the device works {} of the time at {} of what it could do: at its limit, its work of a step "
      "would take {}",
      FormatPercent(rank.Ratio(Share::kCompute)),
      FormatPercent(std::min(1.0, *steps.floor_ns / static_cast<double>(steps.device_ns))),
      FormatDuration(static_cast<int64_t>(*steps.floor_ns / static_cast<double>(steps.steps))));
}

std::string FasterOnCpu(const View& view) {
  const auto& machine = view.recording().machine;
  const auto bf16 = machine.find("cpu_bf16");
  if (bf16 == machine.end()) return "to go faster now: more or faster cores, or a GPU";
  return fmt::format(
      "to go faster now: more or faster cores, a GPU, or {}, for which this CPU has instructions ({})",
      ToUseShortType(ProgramOf(*view.lead().info), "bfloat16", "cpu"), bf16->second);
}

}  // namespace

std::optional<Finding> JudgeHealthy(const View& view, Diagnosis& diagnosis) {
  if (!NothingCostsMuch(diagnosis) || view.IsSingleStep()) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  const bool on_gpu = view.has_gpu() || view.lead().info->device_activity;
  const double waiting = view.lead().Ratio(Share::kDataWait);
  const std::string pipe = on_gpu ? "the GPU's own work is the narrowest pipe"
                                  : "the computation on the CPU is the narrowest pipe";
  finding.title = fmt::format("Healthy: nothing costs more than {}; {}.", FormatPercent(kHealthy),
                              OfTheDevice(view.lead()).value_or(pipe));
  evidence.FromHook("waiting for data", waiting, "ratio");
  evidence.FromMetric(Metric::kGpuUtilization, "GPU utilisation", view.Mean(Metric::kGpuUtilization));
  evidence.FromMetric(Metric::kCpuUtilization, "CPU in use", view.Mean(Metric::kCpuUtilization));
  finding.fix = {on_gpu ? "to go faster now: a faster GPU, or less work per sample (precision, model)"
                        : FasterOnCpu(view)};
  return finding;
}

}  // namespace fullbore::diagnose
