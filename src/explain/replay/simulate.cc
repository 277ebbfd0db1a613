#include "explain/replay/simulate.h"

#include <algorithm>

namespace fullbore::replay {

std::vector<int64_t> Begins(const record::StepGraph& graph) {
  std::vector<int64_t> begins(graph.nodes.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    int64_t begin = 0;
    for (uint32_t e = graph.first_edge[i]; e < graph.first_edge[i + 1]; ++e) {
      const auto& edge = graph.edges[e];
      const int64_t from = begins[edge.from] + (edge.from_begin ? 0 : graph.nodes[edge.from].duration_ns);
      begin = std::max(begin, from + edge.lag_ns);
    }
    begins[i] = begin;
  }
  return begins;
}

double StepNs(const record::StepGraph& graph, const std::vector<int64_t>& begins) {
  if (graph.step_ends.size() < 2) return 0;
  const int64_t span = begins[graph.step_ends.back()] - begins[graph.step_ends.front()];
  return static_cast<double>(span) / static_cast<double>(graph.step_ends.size() - 1);
}

}  // namespace fullbore::replay
