// recomputation: the backward pass computes again what the forward pass had computed, because it was not kept. That is
// the price of memory, paid in time: worth a look where it is large. Whether what would be kept fits is not known.
#include <fmt/format.h>

#include "base/text.h"
#include "explain/diagnose/device_memory.h"
#include "explain/diagnose/device_replay.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/replay/change/change.h"

namespace fullbore::diagnose {

using record::Share;

namespace {

std::string WithoutAny(const RankView& rank) {
  const auto gain = GainOf(rank, {replay::ChangeNamed("no-recompute")});
  if (!gain) return "";
  return fmt::format(": without any recomputation a step would be {:.2f}x as fast ({:.2f}x to {:.2f}x)",
                     gain->expected, gain->low, gain->high);
}

}  // namespace

std::optional<Finding> JudgeRecomputation(const View& view, Diagnosis& diagnosis) {
  if (!diagnosis.recomputed) return std::nullopt;
  const RankView& rank = view.lead();
  const double part = *diagnosis.recomputed;
  const double share = part * rank.Ratio(Share::kCompute);
  if (share < kRecomputed) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.severity = Severity::kInfo;
  finding.open = true;
  finding.share = share;
  finding.title = fmt::format(
      "The backward pass computes again what the forward pass had computed: {} of the device's work.",
      FormatPercent(part));
  finding.fix = {fmt::format("checkpoint fewer blocks, if memory is free{}", WithoutAny(rank)),
                 "checkpoint only what is cheap to compute and large to keep (attention): "
                 "torch.utils.checkpoint.create_selective_checkpoint_contexts; Megatron-LM: "
                 "--recompute-granularity selective"};
  evidence.FromTrace("of the device's work, computed again", part, "ratio");
  if (const auto filled = FilledDeviceMemory(view))
    evidence.FromMetric(record::Metric::kGpuMemoryUsed, "peak device memory in use", *filled, "ratio");
  return finding;
}

}  // namespace fullbore::diagnose
