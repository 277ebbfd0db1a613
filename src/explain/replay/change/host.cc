// Changes to what the host does between the device's operations.
#include <algorithm>
#include <array>

#include "explain/replay/change/changes.h"
#include "explain/replay/hand_over.h"

namespace fullbore::replay {
namespace {

using record::Dependency;
using record::Lane;
using record::Phase;
using record::StepGraph;
using record::Work;

bool ReturnsFromCopyToDevice(const StepGraph::Node& node) {
  return node.work == Work::kReturn && (node.lane == Lane::kH2dPageable || node.lane == Lane::kH2dPinned);
}

// Waits of a host that only wants to read a value, or for no reason; copies to the device and memory have their own
// changes. A wait after which nothing is launched is the end of the recording, and keeps nobody waiting.
std::vector<uint32_t> AvoidableWaits(const StepGraph& graph) {
  std::vector<uint32_t> waits;
  bool launches_follow = false;
  for (uint32_t i = static_cast<uint32_t>(graph.nodes.size()); i-- > 0;) {
    const StepGraph::Node& node = graph.nodes[i];
    launches_follow = launches_follow || node.work == Work::kLaunch;
    if (launches_follow && node.work == Work::kReturn && !node.of_allocator && !ReturnsFromCopyToDevice(node))
      waits.push_back(i);
  }
  return waits;
}

class NoSyncChange : public Change {
 public:
  std::string_view id() const override { return "no-sync"; }
  std::string_view does() const override {
    return "the host reads nothing back from the device within a step";
  }
  std::string_view assumes() const override {
    return "that no decision of the loop depends on the values read";
  }
  Cost cost() const override { return Cost::kCode; }
  bool removes() const override { return true; }
  std::optional<std::string> WhyNot(const StepGraph& graph) const override {
    if (!AvoidableWaits(graph).empty()) return std::nullopt;
    return "the host waits for the device nowhere in these steps";
  }
  double Apply(Outlook outlook, StepGraph& graph) const override {
    // Reading every tenth value is what the advice comes to; cautious: every third.
    const uint32_t keep_every = outlook == Outlook::kCautious ? 3 : outlook == Outlook::kExpected ? 10 : 0;
    // What is not read takes no call and no way to it, either: aten::item takes 8 to 10 us of the host beside its calls
    // (medians in the shared traces of DDP and Qwen).
    constexpr std::array<int64_t, 3> kWayNs = {0, 8'000, 12'000};
    const auto steps = StepOfNodes(graph);
    for (const uint32_t i : AvoidableWaits(graph)) {
      if (keep_every > 0 && steps[i] % keep_every == keep_every - 1) continue;
      for (uint32_t e = graph.first_edge[i]; e < graph.first_edge[i + 1]; ++e) {
        StepGraph::Edge& edge = graph.edges[e];
        if (edge.kind == Dependency::kThread)
          LeaveOutCall(edge.from, kWayNs[static_cast<size_t>(outlook)], graph);
        if (edge.kind != Dependency::kSync) continue;
        LeaveOutTheRead(edge.from, graph);
        Drop(edge);
      }
    }
    return 0;
  }

 private:
  // The copy of a few bytes to the host, and its turn on the stream.
  static void LeaveOutTheRead(uint32_t node, StepGraph& graph) {
    constexpr int64_t kFewBytes = 4096;
    StepGraph::Node& copy = graph.nodes[node];
    const bool to_host = copy.lane == Lane::kD2hPageable || copy.lane == Lane::kD2hPinned;
    if (copy.work != Work::kDevice || !to_host || copy.bytes > kFewBytes) return;
    copy.duration_ns = 0;
    for (uint32_t e = graph.first_edge[node]; e < graph.first_edge[node + 1]; ++e) {
      if (graph.edges[e].kind == Dependency::kStream && !graph.edges[e].from_begin)
        graph.edges[e].lag_ns = std::min<int64_t>(graph.edges[e].lag_ns, 0);
    }
  }
};

class KeptMemoryChange : public Change {
 public:
  std::string_view id() const override { return "allocator"; }
  std::string_view does() const override {
    return "memory of the device is kept for the next tensor instead of being freed and taken again";
  }
  std::string_view assumes() const override { return "room for what is kept"; }
  Cost cost() const override { return Cost::kMemory; }
  bool removes() const override { return true; }
  std::optional<std::string> WhyNot(const StepGraph& graph) const override {
    if (PerStepNs(graph, IsCall) > 0) return std::nullopt;
    return "no call that takes or frees memory of the device was recorded in these steps";
  }
  double Apply(Outlook outlook, StepGraph& graph) const override {
    constexpr std::array<double, 3> kLeft = {0.1, 0, 0};  // while what is kept still grows
    const double left = kLeft[static_cast<size_t>(outlook)];
    for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
      StepGraph::Node& node = graph.nodes[i];
      if (!node.of_allocator) continue;
      node.duration_ns = static_cast<int64_t>(static_cast<double>(node.duration_ns) * left);
      for (uint32_t e = graph.first_edge[i]; e < graph.first_edge[i + 1]; ++e) {
        if (graph.edges[e].kind == Dependency::kSync) Drop(graph.edges[e]);
      }
    }
    return 0;
  }

 private:
  static bool IsCall(const StepGraph::Node& node) { return node.of_allocator && node.work != Work::kReturn; }
};

// From the first kernel that the forward pass launches in a step to the last of the backward pass, on any thread: what
// torch.compile and make_graphed_callables capture. The batch's copy and the optimizer stay outside.
struct Region {
  uint32_t first = 0, last = 0;  // nodes
  bool any = false;
  bool waits = false;  // the host waits for the device in between
  int64_t operations = 0;
  int64_t host_ns = 0;  // what the graph replaces
};

bool IsCaptured(const StepGraph::Node& node) { return IsOfPasses(node.phase); }

std::vector<bool> LaunchesOfKernels(const StepGraph& graph) {
  std::vector<bool> launches(graph.nodes.size());
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const StepGraph::Node& node = graph.nodes[i];
    if (node.work != Work::kDevice || (record::Bit(node.lane) & record::kCopyLanes) != 0) continue;
    for (uint32_t e = graph.first_edge[i]; e < graph.first_edge[i + 1]; ++e) {
      if (graph.edges[e].kind == Dependency::kLaunch) launches[graph.edges[e].from] = true;
    }
  }
  return launches;
}

std::vector<Region> RegionsOf(const StepGraph& graph, const std::vector<uint32_t>& steps) {
  std::vector<Region> regions(graph.step_ends.size() + 1);
  const std::vector<bool> launches = LaunchesOfKernels(graph);
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].work != Work::kLaunch || !launches[i] || !IsCaptured(graph.nodes[i])) continue;
    Region& region = regions[steps[i]];
    if (!region.any) region.first = i;
    region.any = true;
    region.last = i;
    ++region.operations;
  }
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    Region& region = regions[steps[i]];
    const StepGraph::Node& node = graph.nodes[i];
    const bool replaced = region.any && i >= region.first && i <= region.last && IsCaptured(node);
    if (replaced && (node.work == Work::kHost || node.work == Work::kLaunch))
      region.host_ns += node.duration_ns;
    const bool inside = region.any && i > region.first && i < region.last;
    if (inside && graph.nodes[i].work == Work::kReturn && !ReturnsFromCopyToDevice(graph.nodes[i]))
      region.waits = true;
  }
  return regions;
}

class CudaGraphsChange : public Change {
 public:
  std::string_view id() const override { return "graphs"; }
  std::string_view does() const override {
    return "the work of forward and backward pass is launched at once, as a CUDA graph";
  }
  std::string_view assumes() const override {
    return "fixed shapes, and nothing in the step that depends on a value";
  }
  Cost cost() const override { return Cost::kMemory; }
  std::optional<std::string> WhyNot(const StepGraph& graph) const override {
    const auto regions = RegionsOf(graph, StepOfNodes(graph));
    int64_t captured = 0, refused = 0;
    for (const Region& region : regions)
      ++(region.operations < 2 ? refused : region.waits ? refused : captured);
    if (captured == 0 && refused == 0) return "no launches were recorded";
    const bool waits =
        std::any_of(regions.begin(), regions.end(), [](const Region& region) { return region.waits; });
    if (captured < refused && waits)
      return "the host waits for the device within the step, which a graph cannot contain";
    if (captured == 0) return "no launches were recorded";
    return std::nullopt;
  }
  double Apply(Outlook outlook, StepGraph& graph) const override {
    // cudaGraphLaunch: about 10 us of host time, and up to 1 us a node before CUDA 12.6 (NVIDIA's developer
    // blog, "Constant Time Launch for Straight-Line CUDA Graphs"); between nodes of a graph about 1 us on the
    // device.
    constexpr int64_t kLaunchNs = 10'000, kBetweenNs = 1'000;
    constexpr std::array<int64_t, 3> kPerNodeNs = {1'000, 300, 0};
    constexpr int64_t kWorthCapturing = 3;  // a region of a few launches gains nothing
    const auto steps = StepOfNodes(graph);
    const auto regions = RegionsOf(graph, steps);
    for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
      StepGraph::Node& node = graph.nodes[i];
      const Region& region = regions[steps[i]];
      if (!region.any || region.waits || i < region.first || i > region.last || !IsCaptured(node)) continue;
      const int64_t call_ns = kLaunchNs + kPerNodeNs[static_cast<size_t>(outlook)] * region.operations;
      if (kWorthCapturing * call_ns > region.host_ns) continue;
      if (node.work == Work::kHost || node.work == Work::kLaunch) node.duration_ns = 0;
      if (i == region.first) node.duration_ns = call_ns;
      for (uint32_t e = graph.first_edge[i]; e < graph.first_edge[i + 1]; ++e) {
        StepGraph::Edge& edge = graph.edges[e];
        if (edge.kind == Dependency::kHandOver || edge.kind == Dependency::kQueue) edge.lag_ns = 0;
        if (edge.kind == Dependency::kStream) edge.lag_ns = std::min(edge.lag_ns, kBetweenNs);
        if (edge.kind == Dependency::kLaunch) edge.lag_ns = std::min(edge.lag_ns, kLaunchNs);
      }
    }
    return 0;
  }
};

class FusedOptimizerChange : public Change {
 public:
  std::string_view id() const override { return "fused-optimizer"; }
  std::string_view does() const override { return "the optimizer updates all weights with a few kernels"; }
  std::string_view assumes() const override { return "an optimizer that exists in a fused form"; }
  Cost cost() const override { return Cost::kNothing; }
  std::optional<std::string> WhyNot(const StepGraph& graph) const override {
    if (!graph.optimizer.empty() && !HasFusedForm(graph.optimizer))
      return "PyTorch has no fused form of " + graph.optimizer;
    if (LaunchesPerStep(graph) > kFewKernels) return std::nullopt;
    return "the optimizer launches few kernels as it is, or its launches were not recorded";
  }
  double Apply(Outlook outlook, StepGraph& graph) const override {
    // A kernel costs this beside its bytes: what its smallest ones take, which update a bias.
    constexpr std::array<double, 3> kOfSmallest = {0.5, 1, 1};
    const auto of_each_ns = static_cast<int64_t>(static_cast<double>(SmallestKernelNs(graph)) *
                                                 kOfSmallest[static_cast<size_t>(outlook)]);
    // The bytes: one operator after the other, Adam and AdamW read and write 19 and 21 tensors of the weights' size,
    // SGD with momentum 8 or 11 (bench/explain/torch_facts.py counts them); fused, 7 and 5.
    constexpr std::array<double, 3> kOfBytes = {0.63, 0.37, 0.33};
    const double left = kFewKernels / std::max(kFewKernels, LaunchesPerStep(graph));
    for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
      StepGraph::Node& node = graph.nodes[i];
      if (node.phase != Phase::kOptimizer) continue;
      for (uint32_t e = graph.first_edge[i]; e < graph.first_edge[i + 1]; ++e) {  // gaps between kernels
        StepGraph::Edge& edge = graph.edges[e];
        if (edge.kind == Dependency::kStream && edge.lag_ns > 0 && !edge.from_begin)
          edge.lag_ns = static_cast<int64_t>(static_cast<double>(edge.lag_ns) * left);
      }
      if (node.work == Work::kHost || node.work == Work::kLaunch)
        node.duration_ns = static_cast<int64_t>(static_cast<double>(node.duration_ns) * left);
      if (node.work != Work::kDevice) continue;
      const int64_t of_bytes_ns = std::max<int64_t>(0, node.duration_ns - of_each_ns);
      node.duration_ns =
          static_cast<int64_t>(static_cast<double>(of_bytes_ns) * kOfBytes[static_cast<size_t>(outlook)]);
    }
    return 0;
  }

 private:
  static constexpr double kFewKernels = 10;  // a fused optimizer needs one for some hundred tensors
  static constexpr int64_t kLongestOfSmallestNs = 5'000;  // more than that is bytes: all tensors are large

  // The tenth part of the optimizer's kernels is shorter.
  static int64_t SmallestKernelNs(const StepGraph& graph) {
    std::vector<int64_t> durations;
    for (const StepGraph::Node& node : graph.nodes) {
      if (node.work == Work::kDevice && node.phase == Phase::kOptimizer)
        durations.push_back(node.duration_ns);
    }
    if (durations.empty()) return 0;
    const auto tenth = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 10);
    std::nth_element(durations.begin(), tenth, durations.end());
    return std::min(*tenth, kLongestOfSmallestNs);
  }

  static double LaunchesPerStep(const StepGraph& graph) {
    const auto launches =
        std::count_if(graph.nodes.begin(), graph.nodes.end(), [](const StepGraph::Node& node) {
          return node.work == Work::kLaunch && node.phase == Phase::kOptimizer;
        });
    const auto steps = std::max<size_t>(1, graph.step_ends.empty() ? 1 : graph.step_ends.size() - 1);
    return static_cast<double>(launches) / static_cast<double>(steps);
  }
};

class WorkersChange : public Change {
 public:
  // As many as are needed, or this number of them.
  explicit WorkersChange(int workers) : workers_(workers) {
    if (workers > 0) id_ += "=" + std::to_string(workers);
  }
  std::string_view id() const override { return id_; }
  std::string_view does() const override { return "batches are ready when the training asks for them"; }
  std::string_view assumes() const override { return "cores for the workers, and storage that keeps up"; }
  Cost cost() const override { return Cost::kNothing; }
  bool removes() const override { return true; }
  std::optional<std::string> WhyNot(const StepGraph& graph) const override {
    if (PerStepNs(graph, IsLoader) > 0) return std::nullopt;
    return "no wait for a data loader was recorded";
  }
  double Apply(Outlook outlook, StepGraph& graph) const override {
    const auto receive_ns = static_cast<int64_t>(ReceiveNs(outlook, PerStepPageableBytes(graph)));
    // Where the training thread loads by itself, its wait is the fetch, which so many workers share.
    const double fetch_ns = graph.loads_inline && workers_ > 0 ? PerStepNs(graph, IsLoader) : 0;
    for (StepGraph::Node& node : graph.nodes) {
      if (IsLoader(node)) node.duration_ns = std::min(node.duration_ns, receive_ns);
    }
    graph.loads_inline = false;
    return fetch_ns / std::max(1, workers_);
  }

 private:
  int workers_;
  std::string id_ = "workers";
};

// Something that the loop does now and then, moved off it.
class NoPauseChange : public Change {
 public:
  NoPauseChange(Work work, std::string_view id, std::string_view does) : work_(work), id_(id), does_(does) {}
  std::string_view id() const override { return id_; }
  std::string_view does() const override { return does_; }
  std::string_view assumes() const override {
    return "that it can be done beside the training, or more seldom";
  }
  Cost cost() const override { return Cost::kCode; }
  bool removes() const override { return true; }
  std::optional<std::string> WhyNot(const StepGraph& graph) const override {
    const Work work = work_;
    if (PerStepNs(graph, [work](const StepGraph::Node& node) { return node.work == work; }) > 0)
      return std::nullopt;
    return "none was recorded in these steps";
  }
  double Apply(Outlook outlook, StepGraph& graph) const override {
    constexpr std::array<double, 3> kLeft = {0.3, 0.1, 0};
    for (StepGraph::Node& node : graph.nodes) {
      if (!IsOfIt(node)) continue;
      node.duration_ns =
          static_cast<int64_t>(static_cast<double>(node.duration_ns) * kLeft[static_cast<size_t>(outlook)]);
    }
    return 0;
  }

 private:
  // A validation has work on the device, too.
  bool IsOfIt(const StepGraph::Node& node) const {
    return node.work == work_ || (work_ == Work::kValidation && node.phase == Phase::kValidation);
  }

  Work work_;
  std::string_view id_, does_;
};

}  // namespace

// torch.optim's arguments `fused`, as of 2.9; Adagrad's is for the CPU.
bool HasFusedForm(std::string_view optimizer) {
  return optimizer == "Adam" || optimizer == "AdamW" || optimizer == "SGD";
}

const Change* NoSync() {
  static const NoSyncChange change;
  return &change;
}
const Change* KeptMemory() {
  static const KeptMemoryChange change;
  return &change;
}
const Change* CudaGraphs() {
  static const CudaGraphsChange change;
  return &change;
}
const Change* FusedOptimizer() {
  static const FusedOptimizerChange change;
  return &change;
}
const Change* Workers(int count) {
  static const auto all = [] {
    std::vector<WorkersChange> changes;
    for (int i = 0; i <= kMaxWorkers; ++i) changes.emplace_back(i);
    return changes;
  }();
  return count < 0 || count > kMaxWorkers ? nullptr : &all[static_cast<size_t>(count)];
}
const Change* NoCheckpoint() {
  static const NoPauseChange change(Work::kCheckpoint, "checkpoint",
                                    "checkpoints are written beside the training");
  return &change;
}
const Change* NoValidation() {
  static const NoPauseChange change(Work::kValidation, "validation", "validation runs beside the training");
  return &change;
}
const Change* NoGarbageCollection() {
  static const NoPauseChange change(Work::kGarbageCollection, "garbage-collection",
                                    "Python collects garbage between epochs only");
  return &change;
}

}  // namespace fullbore::replay
