// healthy: no other finding costs much. Names what limits such a run, its narrowest pipe.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/program.h"

namespace fullbore::diagnose {

using record::Metric;
using record::Share;

bool NothingCostsMuch(const Diagnosis& diagnosis) {
  return std::ranges::all_of(diagnosis.findings, [](const Finding& finding) {
    // What others do is not this run's illness, but what it is sure to gain by giving way to them is its own.
    const bool gains = finding.speedup.low >= 1 + kHealthy;
    return (finding.of_others && !gains) || finding.open ||
           (finding.severity == Severity::kInfo && finding.share < kHealthy);
  });
}

namespace {

// "the device works 94 % of the time at 61 % of what it could do: at its limit a step would take 88 ms"; nothing
// where a trace has no shapes, too little of the work is known, or the device is not.
std::optional<std::string> OfTheDevice(const RankView& rank, const Diagnosis& diagnosis) {
  if (diagnosis.fitness.Forbids(fitness::Conclusion::kOfTheDevice)) return std::nullopt;
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

// "the computation on the CPU is the narrowest pipe, most of all aten::mm (43 % of the step)"; without the operator
// where they were not looked at.
std::string OfTheCpu(const RankView& rank) {
  std::string pipe = "the computation on the CPU is the narrowest pipe";
  const auto& work = rank.info->host_work;
  if (!work || work->stepped_ns <= 0 || rank.info->operators.empty()) return pipe;
  const record::OperatorTime& most = rank.info->operators.front();
  const double share = static_cast<double>(most.sum_ns) / static_cast<double>(work->stepped_ns);
  return fmt::format("{}, most of all {} ({} of the step)", pipe, most.name,
                     FormatPercent(std::min(1.0, share)));
}

std::string FasterOnCpu(const View& view) {
  const auto& machine = view.recording().machine;
  const auto bf16 = machine.find("cpu_bf16");
  if (bf16 == machine.end()) return "to go faster now: more or faster cores, or a GPU";
  return fmt::format(
      "to go faster now: more or faster cores, a GPU, or {}, for which this CPU has instructions ({})",
      ToUseShortType(ProgramOf(*view.lead().info), "bfloat16", "cpu"), bf16->second);
}

// A run that nobody looked into may do needless work all the time.
void NoteOperatorsUnseen(const View& view, Diagnosis& diagnosis) {
  if (view.recording().source != "run" || !view.ComputesOnCpu() || view.sampling()) return;
  if (view.lead().info->host_work) return;
  NotJudged unseen{"operators on the CPU", "windows of the profiler are taken of PyTorch only", ""};
  if (view.Fact("framework").value_or("torch") == "torch") {
    unseen.why = view.ranks().size() > 1
                     ? "a job of several ranks has windows of the profiler by request only"
                     : "the run was too short for a window of the profiler, or they are switched off";
    unseen.needs = "fullbore run --windows 4@100 -- COMMAND";
  }
  diagnosis.not_judged.push_back(std::move(unseen));
}

}  // namespace

std::optional<Finding> JudgeHealthy(const View& view, Diagnosis& diagnosis) {
  if (!NothingCostsMuch(diagnosis)) return std::nullopt;
  NoteOperatorsUnseen(view, diagnosis);
  Finding finding;
  const EvidenceBuilder evidence(finding);
  const bool on_gpu = view.has_gpu() || view.lead().info->device_activity;
  const double waiting = view.lead().Ratio(Share::kDataWait);
  const std::string pipe = on_gpu ? "the GPU's own work is the narrowest pipe" : OfTheCpu(view.lead());
  const bool open = std::ranges::any_of(diagnosis.findings, [](const Finding& one) {
    return one.open && !one.of_others && one.share >= kHealthy;
  });
  finding.title =
      fmt::format("{} costs more than {}; {}.", open ? "Nothing whose cause is known" : "Healthy: nothing",
                  FormatPercent(kHealthy), OfTheDevice(view.lead(), diagnosis).value_or(pipe));
  evidence.FromHook("waiting for data", waiting, "ratio");
  evidence.FromMetric(Metric::kGpuUtilization, "GPU utilisation", view.Mean(Metric::kGpuUtilization));
  evidence.FromMetric(Metric::kCpuUtilization, "CPU in use", view.Mean(Metric::kCpuUtilization));
  finding.fix = {on_gpu ? "to go faster now: a faster GPU, or less work per sample (precision, model)"
                        : FasterOnCpu(view)};
  return finding;
}

}  // namespace fullbore::diagnose
