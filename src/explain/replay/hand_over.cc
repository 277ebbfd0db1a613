#include "explain/replay/hand_over.h"

#include <algorithm>
#include <array>

namespace fullbore::replay {

using record::Lane;
using record::StepGraph;
using record::Work;

double ReceiveNs(Outlook outlook, double pageable_bytes) {
  // One that is pinned lies there, another thread has taken it: 80 to 118 us in the shared DDP trace. One that is not
  // comes in shared memory, which the training thread maps, is the first to touch, and unmaps: 1.3 to 1.9 ms and 0.075
  // and 0.245 ns a byte on a virtual machine (bench/explain/batch_hand_over.py); cautiously a quarter more, at best,
  // as an estimate, a tenth: on a machine that is not virtual.
  constexpr std::array<double, 3> kPinned = {300e3, 100e3, 80e3}, kMapped = {1.9e6, 1.5e6, 0.15e6};
  const auto at = static_cast<size_t>(outlook);
  return pageable_bytes > 0 ? kMapped[at] + TouchNs(outlook, pageable_bytes) : kPinned[at];
}

double TouchNs(Outlook outlook, double pageable_bytes) {
  constexpr std::array<double, 3> kPerByte = {0.4, 0.32, 0.05};
  return kPerByte[static_cast<size_t>(outlook)] * pageable_bytes;
}

double PerStepPageableBytes(const StepGraph& graph) {
  if (graph.step_ends.size() < 2) return 0;
  int64_t bytes = 0;
  for (uint32_t i = graph.step_ends.front(); i < graph.step_ends.back(); ++i) {
    const StepGraph::Node& node = graph.nodes[i];
    if (node.work == Work::kDevice && node.lane == Lane::kH2dPageable)
      bytes += std::max<int64_t>(0, node.bytes);
  }
  return static_cast<double>(bytes) / static_cast<double>(graph.step_ends.size() - 1);
}

bool IsLoader(const StepGraph::Node& node) { return node.work == Work::kLoader; }

}  // namespace fullbore::replay
