// Changes to copies between host and device.
#include <algorithm>
#include <array>

#include "explain/replay/change/changes.h"
#include "explain/replay/hand_over.h"

namespace fullbore::replay {
namespace {

using record::Dependency;
using record::Lane;
using record::StepGraph;
using record::Work;

bool IsCopyToDevice(const StepGraph::Node& node) {
  return node.work == Work::kDevice && (node.lane == Lane::kH2dPageable || node.lane == Lane::kH2dPinned);
}
bool IsPageableCopy(const StepGraph::Node& node) {
  return node.work == Work::kDevice && (node.lane == Lane::kH2dPageable || node.lane == Lane::kD2hPageable);
}

// What the link gave to pinned copies in this very recording, in bytes per ns; small copies never reach it.
std::optional<double> PinnedRate(const StepGraph& graph) {
  constexpr int64_t kLargeBytes = 1 << 20;
  double best = 0;
  for (const StepGraph::Node& node : graph.nodes) {
    const bool pinned =
        node.work == Work::kDevice && (node.lane == Lane::kH2dPinned || node.lane == Lane::kD2hPinned);
    if (pinned && node.bytes >= kLargeBytes && node.duration_ns > 0)
      best = std::max(best, static_cast<double>(node.bytes) / static_cast<double>(node.duration_ns));
  }
  return best > 0 ? std::optional(best) : std::nullopt;
}

// The median of the calls that launch something; nothing where there are none.
int64_t UsualLaunchNs(const StepGraph& graph) {
  std::vector<int64_t> durations;
  for (const StepGraph::Node& node : graph.nodes) {
    if (node.work == Work::kLaunch) durations.push_back(node.duration_ns);
  }
  if (durations.empty()) return INT64_MAX;
  const auto middle = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2);
  std::nth_element(durations.begin(), middle, durations.end());
  return *middle;
}

// A call copies from pageable memory itself, through a buffer of the driver's ("API synchronization behavior", CUDA
// Runtime API): it is busy for as long as the copy. From pinned memory it only launches it.
void OnlyLaunch(uint32_t copy, int64_t launch_ns, StepGraph& graph) {
  if (const std::optional<uint32_t> call = LaunchOf(graph, copy))
    graph.nodes[*call].duration_ns = std::min(graph.nodes[*call].duration_ns, launch_ns);
}

// The same call, if there is less to copy.
void CopyLess(uint32_t copy, double left, int64_t launch_ns, StepGraph& graph) {
  const std::optional<uint32_t> call = LaunchOf(graph, copy);
  if (!call) return;
  int64_t& ns = graph.nodes[*call].duration_ns;
  const auto copying_ns = static_cast<double>(std::max<int64_t>(0, ns - launch_ns));
  ns = std::min(ns, launch_ns) + static_cast<int64_t>(left * copying_ns);
}

// What pinning asks of the host. A thread of its own takes batches from workers and pins them; without workers the
// training thread does.
void TakePinnedBatches(Outlook outlook, StepGraph& graph) {
  constexpr std::array<double, 3> kPinBytesPerNs = {5, 10,
                                                    20};  // a copy within the host's memory, on one core
  const double bytes = PerStepPageableBytes(graph);
  if (bytes <= 0) return;
  const auto pin_ns = static_cast<int64_t>(bytes / kPinBytesPerNs[static_cast<size_t>(outlook)]);
  const auto mapped_ns = static_cast<int64_t>(ReceiveNs(Outlook::kCautious, bytes));
  const auto pinned_ns = static_cast<int64_t>(ReceiveNs(outlook, 0));
  for (StepGraph::Node& node : graph.nodes) {
    if (!IsLoader(node)) continue;
    if (graph.loads_inline) {
      node.duration_ns += pin_ns;
    } else if (node.duration_ns <= mapped_ns) {  // a longer one waits for the worker, and goes on doing so
      node.duration_ns = std::min(node.duration_ns, pinned_ns);
    }
  }
}

// Copies from pageable memory come from pinned memory instead.
void PinCopies(Outlook outlook, StepGraph& graph) {
  // Where no pinned copy shows what the link gives, the device's bus says what it may: copies reach 78 to 88 % of it
  // (12.3 GB/s on PCIe 3.0, 27.6 on 4.0, in NVIDIA's bandwidthTest and a shared trace); cautiously, half of the
  // lanes are there. Of an unknown device: 6 GB/s (PCIe 3.0 x8), 12 (3.0 x16), 25 (4.0 x16).
  constexpr std::array<double, 3> kOfLink = {0.4, 0.8, 0.88}, kBytesPerNs = {6, 12, 25};
  const auto at = static_cast<size_t>(outlook);
  const double of_device = graph.link_bytes_per_ns * kOfLink[at];
  const double rate = PinnedRate(graph).value_or(of_device > 0 ? of_device : kBytesPerNs[at]);
  const int64_t launch_ns = UsualLaunchNs(graph);
  TakePinnedBatches(outlook, graph);
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    StepGraph::Node& node = graph.nodes[i];
    if (!IsPageableCopy(node)) continue;
    OnlyLaunch(i, launch_ns, graph);
    if (node.bytes <= 0) continue;
    const double ns = static_cast<double>(node.bytes) / rate;
    node.duration_ns = std::min(node.duration_ns, static_cast<int64_t>(ns));
    node.lane = node.lane == Lane::kH2dPageable ? Lane::kH2dPinned : Lane::kD2hPinned;
  }
}

// The host does not wait for copies of the lanes for which `is`.
template <typename Predicate>
void LetHostGoOn(Predicate is, StepGraph& graph) {
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].work != Work::kReturn || !is(graph.nodes[i].lane)) continue;
    for (uint32_t e = graph.first_edge[i]; e < graph.first_edge[i + 1]; ++e) {
      if (graph.edges[e].kind == Dependency::kSync) Drop(graph.edges[e]);
    }
  }
}

class PinnedMemoryChange : public Change {
 public:
  std::string_view id() const override { return "pin"; }
  std::string_view does() const override {
    return "copies come from pinned memory, and the host does not wait for them";
  }
  std::string_view assumes() const override { return "host memory that may be pinned"; }
  Cost cost() const override { return Cost::kNothing; }
  std::optional<std::string> WhyNot(const StepGraph& graph) const override {
    if (std::any_of(graph.nodes.begin(), graph.nodes.end(), IsPageableCopy)) return std::nullopt;
    return "no copy of these steps is from or to pageable memory";
  }
  double Apply(Outlook outlook, StepGraph& graph) const override {
    PinCopies(outlook, graph);
    LetHostGoOn([](Lane lane) { return lane == Lane::kH2dPageable; }, graph);
    return 0;
  }
};

class SideStreamChange : public Change {
 public:
  std::string_view id() const override { return "side-stream"; }
  std::string_view does() const override {
    return "each batch is copied on a stream of its own, one step ahead";
  }
  std::string_view assumes() const override {
    return "room for a second batch on the device, and pinned memory";
  }
  Cost cost() const override { return Cost::kMemory; }
  std::optional<std::string> WhyNot(const StepGraph& graph) const override {
    if (PerStepNs(graph, IsCopyToDevice) > 0) return std::nullopt;
    return "no copy to the device was recorded";
  }
  double Apply(Outlook outlook, StepGraph& graph) const override {
    PinCopies(outlook, graph);
    // Hidden behind the step before, unless the copies of a step alone take longer than that.
    const double floor_ns = PerStepNs(graph, IsCopyToDevice);
    for (StepGraph::Node& node : graph.nodes) {
      if (IsCopyToDevice(node)) node.duration_ns = 0;
    }
    LetHostGoOn([](Lane lane) { return lane == Lane::kH2dPageable || lane == Lane::kH2dPinned; }, graph);
    return floor_ns;
  }
};

class FewerBytesChange : public Change {
 public:
  std::string_view id() const override { return "bytes"; }
  std::string_view does() const override { return "batches are sent as uint8 and converted on the device"; }
  std::string_view assumes() const override {
    return "float32 samples that were made from bytes, as pictures are";
  }
  Cost cost() const override { return Cost::kCode; }
  std::optional<std::string> WhyNot(const StepGraph& graph) const override {
    if (PerStepNs(graph, IsCopyToDevice) > 0) return std::nullopt;
    return "no copy to the device was recorded";
  }
  double Apply(Outlook outlook, StepGraph& graph) const override {
    constexpr std::array<double, 3> kLeft = {0.5, 0.25, 0.25};  // 16 bit instead of 32; 8 instead of 32
    const int64_t launch_ns = UsualLaunchNs(graph);
    for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
      StepGraph::Node& node = graph.nodes[i];
      if (!IsCopyToDevice(node)) continue;
      const double left = kLeft[static_cast<size_t>(outlook)];
      if (IsPageableCopy(node)) CopyLess(i, left, launch_ns, graph);
      node.duration_ns = static_cast<int64_t>(static_cast<double>(node.duration_ns) * left);
      if (node.bytes > 0) node.bytes = static_cast<int64_t>(static_cast<double>(node.bytes) * left);
    }
    return 0;
  }
};

}  // namespace

const Change* PinnedMemory() {
  static const PinnedMemoryChange change;
  return &change;
}
const Change* SideStream() {
  static const SideStreamChange change;
  return &change;
}
const Change* FewerBytes() {
  static const FewerBytesChange change;
  return &change;
}

}  // namespace fullbore::replay
