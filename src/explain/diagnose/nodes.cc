#include "explain/diagnose/nodes.h"

#include <fmt/format.h>

#include "explain/diagnose/node_differences.h"

namespace fullbore::diagnose {

std::vector<NodeSummary> NodesOf(const View& view) {
  const std::vector<record::Node>& nodes = view.stage().nodes;
  if (nodes.size() < 2) return {};
  const NodeDifferences differences(nodes);
  std::vector<NodeSummary> summaries;
  for (size_t i = 0; i < nodes.size(); ++i) {
    NodeSummary& summary = summaries.emplace_back();
    summary.name = nodes[i].name;
    summary.cut_off = nodes[i].cut_off;
    summary.differs = differences.Of(i);
  }
  struct Sum {
    int64_t steps = 0, wall_ns = 0;
    record::ShareTimes share_ns{};
  };
  std::vector<Sum> sums(nodes.size());
  for (const RankView& rank : view.ranks()) {
    const auto node = static_cast<size_t>(rank.info->node);
    summaries[node].ranks.push_back(rank.info->rank);
    sums[node].steps += rank.steps;
    sums[node].wall_ns += rank.wall_ns;
    for (size_t i = 0; i < record::kShareCount; ++i) sums[node].share_ns[i] += rank.share_ns[i];
  }
  for (size_t node = 0; node < sums.size(); ++node) {
    const Sum& sum = sums[node];
    if (sum.steps == 0 || sum.wall_ns == 0) continue;
    summaries[node].mean_step_ns = static_cast<double>(sum.wall_ns) / static_cast<double>(sum.steps);
    for (size_t i = 0; i < record::kShareCount; ++i) {
      if (sum.share_ns[i] == 0) continue;
      summaries[node].shares[std::string(Name(static_cast<record::Share>(i)))] =
          static_cast<double>(sum.share_ns[i]) / static_cast<double>(sum.wall_ns);
    }
  }
  return summaries;
}

std::string RangesOf(const std::vector<int>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (i > 0) text += ",";
    text += std::to_string(ranks[i]);
    if (last > i) text += fmt::format("-{}", ranks[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace fullbore::diagnose
