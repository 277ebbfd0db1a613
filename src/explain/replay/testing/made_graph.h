// Graphs made by hand, node by node. Times in microseconds.
#pragma once

#include <initializer_list>

#include "record/step_graph.h"

namespace fullbore::replay::testing {

class MadeGraph {
 public:
  struct After {
    uint32_t node;
    record::Dependency kind = record::Dependency::kThread;
    int64_t lag_us = 0;
    bool from_begin = false;
  };

  // Returns the node's index, for what comes after it.
  uint32_t Add(record::Work work, int64_t us, std::initializer_list<After> after = {}) {
    record::StepGraph::Node node;
    node.work = work;
    node.duration_ns = us * 1000;
    graph_.nodes.push_back(node);
    for (const After& edge : after)
      graph_.edges.push_back({edge.node, edge.kind, edge.from_begin, edge.lag_us * 1000});
    graph_.first_edge.push_back(static_cast<uint32_t>(graph_.edges.size()));
    const auto index = static_cast<uint32_t>(graph_.nodes.size() - 1);
    if (work == record::Work::kStepEnd) graph_.step_ends.push_back(index);
    return index;
  }
  record::StepGraph::Node& operator[](uint32_t node) { return graph_.nodes[node]; }

  // `recorded` mean step; 0: what the graph itself gives is not compared with anything.
  record::StepGraph Graph(int64_t recorded_us = 0) {
    graph_.recorded_step_ns = static_cast<double>(recorded_us) * 1000;
    return graph_;
  }

 private:
  record::StepGraph graph_ = [] {
    record::StepGraph graph;
    graph.first_edge = {0};
    graph.names = {""};
    return graph;
  }();
};

}  // namespace fullbore::replay::testing
