// healthy: no other finding costs much. Names what limits such a run, its narrowest pipe.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/device_replay.h"
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

// What one change would save although no share shows it: a wait that delays what comes behind it, at the end of each
// step for one. Only of time that is lost; less work (precision, fewer kernels) is another matter.
std::optional<Finding> OneChangeSavesMuch(const View& view) {
  const std::initializer_list<std::string_view> wasting_nothing = {
      "workers", "pin", "side-stream", "no-sync", "fused-optimizer", "graphs", "overlap"};
  Finding finding;
  std::string_view best;
  for (const std::string_view change : wasting_nothing) {
    const double saved = SavedBy(view.lead(), change);
    if (saved <= finding.share) continue;
    finding.share = saved;
    best = change;
  }
  if (finding.share < 2 * kHealthy || !AdviseBest(view.lead(), wasting_nothing, finding)) return std::nullopt;
  if (finding.speedup.low < kWorthwhileGain) return std::nullopt;
  finding.cause = "one-change";
  finding.title =
      fmt::format("Nothing costs more than {} by itself, and yet {} of the step would go if {}.",
                  FormatPercent(kHealthy), FormatPercent(finding.share), replay::ChangeNamed(best)->does());
  EvidenceBuilder(finding).FromReplay("saved by " + std::string(best), finding.share, "ratio");
  return finding;
}

std::string FasterOnCpu(const View& view) {
  const auto& machine = view.recording().machine;
  const auto bf16 = machine.find("cpu_bf16");
  if (bf16 == machine.end()) return "to go faster now: more or faster cores, or a GPU";
  return fmt::format(
      "to go faster now: more or faster cores, a GPU, or torch.autocast(\"cpu\", torch.bfloat16), for "
      "which this CPU has instructions ({})",
      bf16->second);
}

}  // namespace

std::optional<Finding> JudgeHealthy(const View& view, Diagnosis& diagnosis) {
  if (!NothingCostsMuch(diagnosis) || view.IsSingleStep()) return std::nullopt;
  if (auto saving = OneChangeSavesMuch(view)) return saving;
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
