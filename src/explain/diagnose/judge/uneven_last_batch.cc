// uneven-last-batch: in some steps, usually the last of an epoch, the ranks have batches of different sizes.
// Ranks with smaller batches wait for the others, and some may have no batch at all.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/lateness.h"

namespace fullbore::diagnose {

using record::Step;

std::optional<Finding> JudgeUnevenLastBatch(const View& view, Diagnosis& /*diagnosis*/) {
  const auto ranks = RanksTogether(view);
  if (ranks.size() < 2) return std::nullopt;
  std::map<int64_t, std::vector<const Step*>> by_index;
  for (const RankView* rank : ranks) {
    for (const Step* step : rank->steady) by_index[step->index].push_back(step);
  }
  int64_t uneven = 0, least = 0, most = 0;
  for (const auto& [index, steps] : by_index) {
    if (steps.size() != ranks.size()) continue;
    const auto [low, high] = std::minmax_element(steps.begin(), steps.end(),
                                                 [](auto* a, auto* b) { return a->samples < b->samples; });
    if ((*low)->samples == (*high)->samples || (*low)->samples == 0) continue;
    if (uneven++ == 0) least = (*low)->samples, most = (*high)->samples;
  }
  if (uneven == 0) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.severity = Severity::kWarning;
  finding.title = fmt::format("In {} step{} the ranks had batches of different sizes ({} and {} samples).",
                              uneven, uneven == 1 ? "" : "s", least, most);
  finding.fix = {
      "drop_last=True in the loader and the sampler, or let DistributedSampler pad by repeating (its "
      "default)",
      "with batch normalisation a batch of very few samples has noisy statistics, and one value per channel "
      "ends the training with an error"};
  evidence.FromHook("steps with uneven batches", static_cast<double>(uneven), "count");
  return finding;
}

}  // namespace fullbore::diagnose
