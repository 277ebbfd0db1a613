// A step graph while it is put together: nodes and dependencies in any order, with the times at which they
// were recorded. Those times are used to order the nodes, and end here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "record/step_graph.h"
#include "timeline/device/trace.h"

namespace fullbore::timeline {

class GraphDraft {
 public:
  GraphDraft() { graph_.names.emplace_back(); }

  // A node from begin_ns to end_ns, and its number.
  uint32_t Add(int64_t begin_ns, int64_t end_ns, record::Work work, uint16_t place);
  // `to` begins no earlier than lag_ns after the end of `from` (or its begin). Nothing happens if either is
  // kNone.
  void Tie(uint32_t from, uint32_t to, int64_t lag_ns, record::Dependency kind, bool from_begin = false);

  record::StepGraph::Node& node(uint32_t n) { return nodes_[n].node; }
  int64_t begin_ns(uint32_t n) const { return nodes_[n].begin_ns; }
  int64_t end_ns(uint32_t n) const { return nodes_[n].begin_ns + nodes_[n].node.duration_ns; }
  // The node begins at begin_ns instead, and lasts until end_ns.
  void Move(uint32_t n, int64_t begin_ns, int64_t end_ns);

  uint32_t Name(const std::string& text);  // its index in the graph

  // The graph, with its nodes by time. A dependency that the times contradict is left out and counted; a node
  // that waits for nothing begins as long after the first of all as it did.
  record::StepGraph Finish() &&;

 private:
  struct Node {
    int64_t begin_ns;
    record::StepGraph::Node node;
  };
  struct Edge {
    uint32_t from, to;
    int64_t lag_ns;
    record::Dependency kind;
    bool from_begin;
  };

  record::StepGraph graph_;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::map<std::string, uint32_t> names_;
};

}  // namespace fullbore::timeline
