#include "explain/replay/change/change.h"

#include <algorithm>
#include <array>
#include <climits>

#include "base/text.h"
#include "explain/replay/change/changes.h"

namespace fullbore::replay {

using record::Dependency;
using record::StepGraph;

std::string_view Name(Cost cost) {
  constexpr std::array<std::string_view, 4> kNames = {"nothing", "code", "memory", "numerics"};
  return kNames[static_cast<size_t>(cost)];
}

const std::vector<const Change*>& AllChanges() {
  static const std::vector<const Change*> all = {Workers(),        PinnedMemory(),       SideStream(),
                                                 NoSync(),         KeptMemory(),         NoStraggler(),
                                                 FusedOptimizer(), CudaGraphs(),         Compile(),
                                                 LowerPrecision(), FewerBytes(),         Overlap(),
                                                 FasterComm(),     NoRecomputation(),    NoCheckpoint(),
                                                 NoValidation(),   NoGarbageCollection()};
  return all;
}

const Change* ChangeNamed(std::string_view id) {
  struct Numbered {
    std::string_view name;
    const Change* (*change)(int number);
  };
  constexpr Numbered kNumbered[] = {
      {"workers=", Workers}, {"links=", FasterLinks}, {"accumulate=", Accumulation}, {"bucket=", Buckets}};
  if (id.starts_with(kDevicePrefix)) return OtherDevice(id.substr(kDevicePrefix.size()));
  for (const Numbered& kind : kNumbered) {
    if (!id.starts_with(kind.name)) continue;
    const auto number = ParseInt(id.substr(kind.name.size()));
    return number && *number > 0 && *number <= INT_MAX ? kind.change(static_cast<int>(*number)) : nullptr;
  }
  const auto found = std::find_if(AllChanges().begin(), AllChanges().end(),
                                  [&](const Change* change) { return change->id() == id; });
  return found == AllChanges().end() ? nullptr : *found;
}

std::optional<uint32_t> LaunchOf(const StepGraph& graph, uint32_t node) {
  for (uint32_t e = graph.first_edge[node]; e < graph.first_edge[node + 1]; ++e) {
    if (graph.edges[e].kind == Dependency::kLaunch) return graph.edges[e].from;
  }
  return std::nullopt;
}

namespace {

void Shorten(StepGraph::Node& node, int64_t& by_ns) {
  if (node.work != record::Work::kHost) return;
  const int64_t ns = std::min(node.duration_ns, by_ns);
  node.duration_ns -= ns;
  by_ns -= ns;
}

// The next node of its thread; nodes are in the order of their begin, and few threads launch at a time.
std::optional<uint32_t> NextOfThread(uint32_t node, const StepGraph& graph) {
  constexpr uint32_t kFar = 256;
  const uint32_t end = std::min(static_cast<uint32_t>(graph.nodes.size()), node + kFar);
  for (uint32_t next = node + 1; next < end; ++next) {
    for (uint32_t e = graph.first_edge[next]; e < graph.first_edge[next + 1]; ++e) {
      if (graph.edges[e].kind == Dependency::kThread && graph.edges[e].from == node) return next;
    }
  }
  return std::nullopt;
}

}  // namespace

void LeaveOutCall(uint32_t call, int64_t way_ns, StepGraph& graph) {
  graph.nodes[call].duration_ns = 0;
  for (uint32_t e = graph.first_edge[call]; e < graph.first_edge[call + 1]; ++e) {
    if (graph.edges[e].kind == Dependency::kThread) Shorten(graph.nodes[graph.edges[e].from], way_ns);
  }
  if (way_ns == kAllOfTheWay || way_ns <= 0) return;
  if (const auto next = NextOfThread(call, graph)) Shorten(graph.nodes[*next], way_ns);
}

std::vector<uint32_t> StepOfNodes(const record::StepGraph& graph) {
  std::vector<uint32_t> steps(graph.nodes.size());
  uint32_t step = 0;
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    steps[i] = step;
    if (step < graph.step_ends.size() && graph.step_ends[step] == i) ++step;
  }
  return steps;
}

}  // namespace fullbore::replay
