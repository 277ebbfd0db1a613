#include "explain/diagnose/pipeline_bubble.h"

#include <fmt/format.h>

#include "base/text.h"
#include "explain/diagnose/evidence.h"

namespace fullbore::diagnose {

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
      "between them "
      "take {} of a step.",
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

}  // namespace fullbore::diagnose
