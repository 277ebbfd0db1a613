#include "explain/replay/transfer.h"

#include <algorithm>
#include <array>

#include "explain/replay/change/changes.h"

namespace fullbore::replay {

using record::StepGraph;

// Where all have one size, that does not tell their start. For a few bytes, published runs of nccl-tests show from 6 us
// (two H100, NVIDIA/nccl#1259) to 54 us (eight RTX 3090, NVIDIA/nccl#1439); it is at most what the shortest takes.
double Transfer::SavedNs(Outlook outlook) const {
  constexpr std::array<double, 3> kOfStart = {0.7, 1, 1.2}, kUsualNs = {8e3, 30e3, 1e12};
  const auto at = static_cast<size_t>(outlook);
  return told ? start_ns * kOfStart[at] : std::min(kUsualNs[at], shortest_ns);
}

// The line of least squares; a start below 0 is none, and one above the shortest collective is that.
Transfer TransferOf(const StepGraph& graph) {
  double n = 0, bytes = 0, ns = 0, squares = 0, products = 0, shortest_ns = 0;
  for (const StepGraph::Node& node : graph.nodes) {
    if (!IsCollective(node)) continue;
    const auto own_ns = static_cast<double>(node.duration_ns - node.wait_ns);
    shortest_ns = n == 0 && shortest_ns == 0 ? own_ns : std::min(shortest_ns, own_ns);
    if (node.bytes <= 0) continue;
    const auto size = static_cast<double>(node.bytes);
    n += 1;
    bytes += size;
    ns += own_ns;
    squares += size * size;
    products += size * own_ns;
  }
  if (n == 0) return {false, shortest_ns, shortest_ns};
  const double spread = squares - bytes * bytes / n;
  const bool told = spread > 0.01 * squares;
  const double ns_per_byte = std::max(0.0, told ? (products - bytes * ns / n) / spread : ns / bytes);
  return {told, std::clamp((ns - ns_per_byte * bytes) / n, 0.0, shortest_ns), shortest_ns};
}

CollectiveCalls::CollectiveCalls(const StepGraph& graph) : launches_(graph.nodes.size()) {
  for (const StepGraph::Edge& edge : graph.edges)
    launches_[edge.from] += edge.kind == record::Dependency::kLaunch;
}

void CollectiveCalls::LeaveOut(uint32_t collective, Outlook outlook, StepGraph& graph) const {
  // Through c10d and NCCL, beside the launch: 73 us in the shared trace of DDP on two V100 (2,020 calls of
  // c10d::allreduce_, 92 us in the median, 19 of them in calls of the runtime), under a profiler.
  constexpr std::array<int64_t, 3> kWayNs = {15'000, 45'000, 75'000};
  if (const auto call = LaunchOf(graph, collective); call && launches_[*call] == 1)
    LeaveOutCall(*call, kWayNs[static_cast<size_t>(outlook)], graph);
}

}  // namespace fullbore::replay
