// recomputation: the backward pass computes again what the forward pass had computed, because it was not kept. That is
// the price of memory, paid in time: worth a look where it is large. Whether what would be kept fits on a device is not
// known; on a CPU it is where half of the machine's memory is free.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "explain/diagnose/device_memory.h"
#include "explain/diagnose/device_replay.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/replay/change/change.h"
#include "record/json_text.h"

namespace fullbore::diagnose {

using record::Metric;
using record::NumberIn;
using record::Share;

namespace {

std::string WithoutAny(const RankView& rank) {
  const auto gain = GainOf(rank, {replay::ChangeNamed("no-recompute")});
  if (!gain) return "";
  return fmt::format(": without any recomputation a step would be {:.2f}x as fast ({:.2f}x to {:.2f}x)",
                     gain->expected, gain->low, gain->high);
}

constexpr char kFewer[] = "checkpoint fewer blocks, if memory is free";
constexpr char kSelective[] =
    "checkpoint only what is cheap to compute and large to keep (attention): "
    "torch.utils.checkpoint.create_selective_checkpoint_contexts; Megatron-LM: "
    "--recompute-granularity selective";
constexpr char kOff[] =
    "keep the activations: without torch.utils.checkpoint; Transformers, TRL: gradient_checkpointing=False";

std::optional<Finding> OnTheDevice(const View& view, double part) {
  const double share = part * view.lead().Ratio(Share::kCompute);
  if (share < kRecomputed) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.severity = Severity::kInfo;
  finding.open = true;
  finding.share = share;
  finding.title = fmt::format(
      "The backward pass computes again what the forward pass had computed: {} of the device's work.",
      FormatPercent(part));
  finding.fix = {kFewer + WithoutAny(view.lead()), kSelective};
  evidence.FromTrace("of the device's work, computed again", part, "ratio");
  if (const auto filled = FilledDeviceMemory(view))
    evidence.FromMetric(Metric::kGpuMemoryUsed, "peak device memory in use", *filled, "ratio");
  return finding;
}

// ---- On a CPU ----

// Of the step, what the modules do for the second time: by its part of all their operations; and by what those of the
// forward pass took.
struct Again {
  double of_operations = 0, of_forward = 0;

  double Expected() const { return (of_operations + of_forward) / 2; }
};

Again AgainOf(const View& view) {
  const auto text = view.Fact("flops");
  const nlohmann::json flops = text ? record::ParseJson(*text) : nlohmann::json();
  if (!flops.is_object() || !view.ComputesOnCpu()) return {};
  const double step = NumberIn(flops, "step"), again = NumberIn(flops, "again");
  const double forward = step - again - NumberIn(flops, "backward");
  if (again <= 0 || forward <= 0) return {};
  const RankView& rank = view.lead();
  return {again / step * (rank.Ratio(Share::kForward) + rank.Ratio(Share::kBackward)),
          std::min(again / forward * rank.Ratio(Share::kForward), rank.Ratio(Share::kBackward))};
}

// Of the machine's memory, at its fullest. A container's limit may be narrower: then it is not known.
std::optional<double> FreeMemory(const View& view) {
  const auto total = view.Mean(Metric::kMemoryTotal), used = view.Max(Metric::kMemoryUsed);
  if (!total || !used || *total <= 0 || view.Max(Metric::kCgroupMemoryLimit)) return std::nullopt;
  return 1 - *used / *total;
}

// A part of what is saved goes into keeping: it is written, and read again. And neither way of counting is exact.
constexpr double kLeastSaved = 0.7, kMostSaved = 1.1;
// Of the machine's memory: what is kept has room there.
constexpr double kRoomToKeep = 0.5;
// As kRecomputed: a warning from there on, for here it is known what it would take.
constexpr Levels kRecomputedOnCpu = {kRecomputed, 0.25};

void Promise(const Again& again, Finding& finding) {
  const auto without = [](double part) { return 1 / (1 - std::min(part, 0.99)); };
  const auto [least, most] = std::minmax(again.of_operations, again.of_forward);
  finding.fix.front() = kOff;
  finding.speedup = {without(again.Expected()), without(least * kLeastSaved), without(most * kMostSaved)};
  finding.method =
      "what the modules compute twice is computed once: by their operations, and by what these take forward";
}

std::optional<Finding> OnTheCpu(const View& view) {
  const Again again = AgainOf(view);
  const double share = again.Expected();
  const auto severity = SeverityOf(share, kRecomputedOnCpu, view.lead().steps);
  if (!severity) return std::nullopt;
  const auto free = FreeMemory(view);
  const bool has_room = free && *free >= kRoomToKeep;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.severity = has_room ? *severity : Severity::kInfo;
  finding.open = !has_room;
  finding.share = share;
  finding.title =
      fmt::format("The backward pass computes again what the forward pass had computed: {} of the step.",
                  FormatPercent(share));
  finding.fix = {kFewer, kSelective};
  finding.costs = replay::Cost::kMemory;
  evidence.FromHook("operations of the model that are done for the second time", share, "ratio");
  if (free) evidence.FromMetric(Metric::kMemoryUsed, "free memory of the machine", *free, "ratio");
  if (has_room) Promise(again, finding);
  return finding;
}

}  // namespace

std::optional<Finding> JudgeRecomputation(const View& view, Diagnosis& diagnosis) {
  return diagnosis.recomputed ? OnTheDevice(view, *diagnosis.recomputed) : OnTheCpu(view);
}

}  // namespace fullbore::diagnose
