#include "explain/replay/ranks.h"

#include <algorithm>
#include <set>

#include "explain/replay/predict.h"
#include "record/ranks_together.h"

namespace fullbore::replay {
namespace {

using record::StepGraph;

constexpr size_t kMaxNodes = 500'000;  // of all of them: more take longer and say little more

struct Met {
  const StepGraph* graph;
  int64_t waits_ns;  // for others
};

}  // namespace

std::vector<const StepGraph*> RanksAround(const StepGraph& graph,
                                          const std::vector<const StepGraph*>& others) {
  std::set<uint32_t> meetings;
  for (const StepGraph::Node& node : graph.nodes) meetings.insert(node.meeting);
  meetings.erase(0);
  std::vector<Met> met;
  for (const StepGraph* other : others) {
    if (other == &graph) continue;
    bool meets = false;
    int64_t waits_ns = 0;
    for (const StepGraph::Node& node : other->nodes) {
      meets = meets || (node.meeting > 0 && meetings.contains(node.meeting));
      waits_ns += node.wait_ns;
    }
    if (meets) met.push_back({other, waits_ns});
  }
  std::ranges::stable_sort(met, {}, &Met::waits_ns);
  std::vector<const StepGraph*> ranks = {&graph};
  size_t nodes = graph.nodes.size();
  for (const Met& other : met) {
    nodes += other.graph->nodes.size();
    if (ranks.size() == record::kMostRanksTogether || nodes > kMaxNodes) break;
    ranks.push_back(other.graph);
  }
  if (ReplayError(Ranks(ranks)) > kRough) ranks.resize(1);
  return ranks;
}

}  // namespace fullbore::replay
