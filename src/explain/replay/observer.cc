#include "explain/replay/observer.h"

#include <algorithm>
#include <array>

#include "explain/replay/simulate.h"

namespace fullbore::replay {

using record::StepGraph;

// An event costs the host so many times what it takes from the begin of an operator to that of the first one within it,
// which is itself mostly the profiler's: 1.0 to 3.5 where programs were timed with and without it (torch 2.11 on an
// H100's host, 2.13 on a CPU; docs/measurements.md), less in recordings without shapes. As a simulator's author guesses
// from documents it is 0.4.
constexpr std::array<double, 3> kOfStart = {0.3, 1.6, 3.5};
// What is left of the host's time at least: an operator does something, too.
constexpr double kLeft = 0.4;

bool IsWatched(const StepGraph& graph) {
  return graph.operator_start_ns > 0 &&
         std::ranges::any_of(graph.nodes, [](const StepGraph::Node& node) { return node.events > 0; });
}

namespace {

StepGraph Without(const StepGraph& graph, double event_ns) {
  StepGraph without = graph;
  for (StepGraph::Node& node : without.nodes) {
    const auto ns = static_cast<double>(node.duration_ns);
    node.duration_ns = static_cast<int64_t>(std::max(kLeft * ns, ns - event_ns * node.events));
  }
  return without;
}

}  // namespace

StepGraph Unwatched(const StepGraph& graph, Outlook outlook) {
  return Without(graph, graph.operator_start_ns * kOfStart[static_cast<size_t>(outlook)]);
}

StepGraph UnwatchedTo(const StepGraph& graph, double step_ns) {
  constexpr double kMostOfEvent = 1e6;  // ns; the least that is left of the host bounds it long before
  constexpr int kHalvings = 24;         // to less than a nanosecond
  const bool was_slowed = StepNs(graph) > step_ns;
  double least = 0, most = was_slowed ? kMostOfEvent : 0;
  for (int i = 0; i < kHalvings && was_slowed; ++i) {
    const double middle = (least + most) / 2;
    (StepNs(Without(graph, middle)) > step_ns ? least : most) = middle;
  }
  StepGraph without = Without(graph, most);
  for (StepGraph::Node& node : without.nodes) node.events = 0;
  without.recorded_step_ns = std::min(step_ns, graph.recorded_step_ns);
  return without;
}

}  // namespace fullbore::replay
