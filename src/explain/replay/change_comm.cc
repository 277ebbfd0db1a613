// Changes to what ranks exchange.
#include <algorithm>
#include <array>

#include "explain/replay/changes.h"

namespace fullbore::replay {
namespace {

using record::Lane;
using record::StepGraph;
using record::Work;

bool IsCollective(const StepGraph::Node& node) {
  return node.work == Work::kDevice && node.lane == Lane::kComm;
}
bool WaitsForRanks(const StepGraph::Node& node) { return IsCollective(node) && node.wait_ns > 0; }

class NoStragglerChange : public Change {
 public:
  std::string_view id() const override { return "straggler"; }
  std::string_view does() const override { return "all ranks come to their collectives at the same time"; }
  std::string_view assumes() const override { return "that what delays the last rank can be taken away"; }
  Cost cost() const override { return Cost::kNothing; }
  std::optional<std::string> WhyNot(const StepGraph& graph) const override {
    if (PerStepNs(graph, WaitsForRanks) > 0) return std::nullopt;
    return "no wait for another rank is known: that needs the traces of several ranks";
  }
  double Apply(Outlook outlook, StepGraph& graph) const override {
    constexpr std::array<double, 3> kTaken = {0.7, 0.9, 1};
    for (StepGraph::Node& node : graph.nodes) {
      if (!WaitsForRanks(node)) continue;
      const auto ns =
          static_cast<int64_t>(static_cast<double>(node.wait_ns) * kTaken[static_cast<size_t>(outlook)]);
      node.duration_ns = std::max<int64_t>(0, node.duration_ns - ns);
      node.wait_ns -= ns;
    }
    return 0;
  }
};

class FasterCommChange : public Change {
 public:
  std::string_view id() const override { return "comm"; }
  std::string_view does() const override { return "gradients are exchanged in 16 bit: half of the bytes"; }
  std::string_view assumes() const override {
    return "gradients in float32 now, and collectives bound by their bytes";
  }
  Cost cost() const override { return Cost::kNumerics; }
  std::optional<std::string> WhyNot(const StepGraph& graph) const override {
    if (PerStepNs(graph, IsCollective) > 0) return std::nullopt;
    return "no collective was recorded";
  }
  double Apply(Outlook outlook, StepGraph& graph) const override {
    constexpr std::array<double, 3> kLeft = {0.8, 0.6, 0.5};
    for (StepGraph::Node& node : graph.nodes) {
      if (!IsCollective(node)) continue;
      const auto own = static_cast<double>(node.duration_ns - node.wait_ns);
      node.duration_ns = node.wait_ns + static_cast<int64_t>(own * kLeft[static_cast<size_t>(outlook)]);
    }
    return 0;
  }
};

}  // namespace

const Change* NoStraggler() {
  static const NoStragglerChange change;
  return &change;
}
const Change* FasterComm() {
  static const FasterCommChange change;
  return &change;
}

}  // namespace fullbore::replay
