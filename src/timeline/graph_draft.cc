#include "timeline/graph_draft.h"

#include <algorithm>
#include <numeric>

namespace fullbore::timeline {

using record::Dependency;
using record::StepGraph;
using record::Work;

uint32_t GraphDraft::Add(int64_t begin_ns, int64_t end_ns, Work work, uint16_t place) {
  StepGraph::Node node;
  node.duration_ns = end_ns - begin_ns;
  node.work = work;
  node.place = place;
  nodes_.push_back({begin_ns, node});
  return static_cast<uint32_t>(nodes_.size() - 1);
}

void GraphDraft::Tie(uint32_t from, uint32_t to, int64_t lag_ns, Dependency kind, bool from_begin) {
  if (from != kNone && to != kNone) edges_.push_back({from, to, lag_ns, kind, from_begin});
}

void GraphDraft::Move(uint32_t n, int64_t begin_ns, int64_t end_ns) {
  nodes_[n].begin_ns = begin_ns;
  nodes_[n].node.duration_ns = end_ns - begin_ns;
}

uint32_t GraphDraft::Name(const std::string& text) {
  if (text.empty()) return 0;
  const auto [place, added] = names_.try_emplace(text, static_cast<uint32_t>(graph_.names.size()));
  if (added) graph_.names.push_back(text);
  return place->second;
}

StepGraph GraphDraft::Finish() && {
  std::vector<uint32_t> order(nodes_.size()), place(nodes_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return nodes_[a].begin_ns < nodes_[b].begin_ns; });
  for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;

  const auto contradicted = std::remove_if(
      edges_.begin(), edges_.end(), [&](const Edge& edge) { return place[edge.from] >= place[edge.to]; });
  graph_.contradicted = edges_.end() - contradicted;
  edges_.erase(contradicted, edges_.end());

  std::vector<bool> waits(nodes_.size());
  for (const Edge& edge : edges_) waits[edge.to] = true;
  for (uint32_t n = 0; n < nodes_.size(); ++n) {
    if (!waits[n] && place[n] > 0)
      Tie(order[0], n, nodes_[n].begin_ns - nodes_[order[0]].begin_ns, Dependency::kStart, true);
  }
  std::stable_sort(edges_.begin(), edges_.end(),
                   [&](const Edge& a, const Edge& b) { return place[a.to] < place[b.to]; });

  if (!order.empty()) graph_.begin_ns = nodes_[order[0]].begin_ns;
  graph_.nodes.reserve(nodes_.size());
  for (const uint32_t n : order) {
    graph_.nodes.push_back(nodes_[n].node);
    if (nodes_[n].node.work == Work::kStepEnd)
      graph_.step_ends.push_back(static_cast<uint32_t>(graph_.nodes.size() - 1));
  }
  graph_.first_edge.assign(nodes_.size() + 1, 0);
  graph_.edges.reserve(edges_.size());
  for (const Edge& edge : edges_) {
    graph_.edges.push_back({place[edge.from], edge.kind, edge.from_begin, edge.lag_ns});
    ++graph_.first_edge[place[edge.to] + 1];
  }
  std::partial_sum(graph_.first_edge.begin(), graph_.first_edge.end(), graph_.first_edge.begin());
  return std::move(graph_);
}

}  // namespace fullbore::timeline
