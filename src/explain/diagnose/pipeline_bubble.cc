#include "explain/diagnose/pipeline_bubble.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "explain/diagnose/evidence.h"

namespace fullbore::diagnose {
namespace {

// Devices whose work hardly ever overlaps work in turn.
constexpr double kInTurn = 0.1;

double SumOf(const std::vector<int64_t>& values) {
  return static_cast<double>(std::accumulate(values.begin(), values.end(), int64_t{0}));
}

}  // namespace

PipelineBubble BubbleOf(const std::vector<const RankView*>& ranks) {
  PipelineBubble most;
  for (const RankView* rank : ranks) {
    const record::RankInfo& info = *rank->info;
    double wall_ns = 0;
    for (const record::Step& step : info.steps) wall_ns += static_cast<double>(step.wall_ns);
    const double waiting = wall_ns > 0 ? static_cast<double>(info.noticed.bubble_ns) / wall_ns : 0;
    if (waiting <= most.waiting) continue;
    most = {info.rank, waiting,
            static_cast<double>(info.noticed.transfer_ns) / static_cast<double>(info.steps.size())};
  }
  return most;
}

Finding OfThePipeline(const PipelineBubble& bubble, const View& view, Finding finding) {
  finding.cause = "pipeline-bubble";
  finding.title = fmt::format(
      "The stages of the pipeline wait for each other, rank {} for {} of the time (the bubble); transfers "
      "between them take {} of a step.",
      bubble.rank, FormatPercent(bubble.waiting), FormatDuration(static_cast<int64_t>(bubble.transfer_ns)));
  finding.fix = {
      "more and smaller micro-batches in a step: an even pipeline of p stages and m micro-batches idles "
      "(p-1)/(m+p-1) of the time",
      "a schedule with a smaller bubble: several model chunks on each stage (interleaved 1F1B), or a "
      "zero-bubble one",
      "stages of equal work: where one computes longer than the others, all wait for it"};
  const EvidenceBuilder evidence(finding);
  evidence.FromSteps(view.lead(), fmt::format("rank {} waits for other stages", bubble.rank), bubble.waiting,
                     "ratio");
  evidence.FromSteps(view.lead(), "transfer between stages in a step", bubble.transfer_ns / 1e6, "ms");
  return finding;
}

bool WaitsForItsOtherDevices(const RankView& rank) {
  if (rank.info->noticed.each_busy_ns.size() < 2) return false;
  int64_t exposed_ns = 0;
  for (const record::Step& step : rank.info->steps)
    exposed_ns += step.share_ns[Index(record::Share::kCommExposed)];
  return exposed_ns > 2 * rank.info->comm_exposed_ns.value_or(0);
}

Finding OfItsDevices(const RankView& rank, Finding finding) {
  const record::Noticed& noticed = rank.info->noticed;
  const auto span_ns = static_cast<double>(std::max<int64_t>(1, noticed.span_ns));
  const double sum_ns = SumOf(noticed.each_busy_ns);
  const bool in_turn = static_cast<double>(noticed.together_ns) < kInTurn * sum_ns;
  finding.cause = "devices-of-one-process";
  finding.title =
      fmt::format("The {} devices of one process {}: each works {} of the time on average.",
                  noticed.each_busy_ns.size(), in_turn ? "work one after the other" : "wait for each other",
                  FormatPercent(sum_ns / span_ns / static_cast<double>(noticed.each_busy_ns.size())));
  finding.fix = {
      "one process a device (torchrun): DistributedDataParallel, or FSDP where the model does not fit on one",
      "layers spread over devices: several micro-batches at once (torch.distributed.pipelining), so that the "
      "devices work at the same time",
      "fewer devices, if the model fits on them: each would work more of the time"};
  const EvidenceBuilder evidence(finding);
  for (size_t i = 0; i < std::min<size_t>(noticed.each_busy_ns.size(), 8); ++i) {
    evidence.FromTrace(
        i == 0 ? "the device that is judged works" : fmt::format("another device works ({})", i),
        static_cast<double>(noticed.each_busy_ns[i]) / span_ns, "ratio");
  }
  evidence.FromTrace("at least two of them work", static_cast<double>(noticed.together_ns) / span_ns,
                     "ratio");
  return finding;
}

}  // namespace fullbore::diagnose
