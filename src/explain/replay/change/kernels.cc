// Changes to the device's own work.
#include <algorithm>
#include <array>
#include <map>

#include "explain/replay/change/changes.h"

namespace fullbore::replay {
namespace {

using record::Dependency;
using record::Lane;
using record::Phase;
using record::StepGraph;
using record::Work;

bool IsPointwise(const StepGraph::Node& node) {
  return node.work == Work::kDevice && (node.lane == Lane::kElementwise || node.lane == Lane::kReduction) &&
         node.phase != Phase::kOptimizer;
}

// Elementwise kernels and reductions that follow one another on a stream, two or more: what a compiler fuses.
struct Chain {
  std::vector<uint32_t> nodes;
};

std::vector<Chain> ChainsOf(const StepGraph& graph) {
  std::map<uint16_t, Chain> open;  // by stream
  std::vector<Chain> chains;
  const auto close = [&](Chain& chain) {
    if (chain.nodes.size() > 1) chains.push_back(std::move(chain));
    chain = {};
  };
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].work != Work::kDevice) continue;
    Chain& chain = open[graph.nodes[i].place];
    if (!IsPointwise(graph.nodes[i])) {
      close(chain);
      continue;
    }
    chain.nodes.push_back(i);
  }
  for (auto& [stream, chain] : open) close(chain);
  return chains;
}

class CompileChange : public Change {
 public:
  std::string_view id() const override { return "compile"; }
  std::string_view does() const override { return "torch.compile fuses chains of elementwise kernels"; }
  std::string_view assumes() const override { return "a model that compiles without graph breaks"; }
  Cost cost() const override { return Cost::kCode; }
  std::optional<std::string> WhyNot(const StepGraph& graph) const override {
    if (graph.compiled) return "the program is compiled already";
    if (!ChainsOf(graph).empty()) return std::nullopt;
    return "no two elementwise kernels or reductions follow each other";
  }
  double Apply(Outlook outlook, StepGraph& graph) const override {
    // A kernel of n inputs and an output moves n + 1 tensors, the fused chain only what enters and leaves it.
    // Each kernel of a chain of k reads and writes about twice what it adds to the chain: k of them cost 2k,
    // the fused one between 2 (nothing else enters) and k + 1 (something new enters at each).
    for (const Chain& chain : ChainsOf(graph)) {
      const auto k = static_cast<double>(chain.nodes.size());
      const double left = outlook == Outlook::kHopeful    ? 1 / k
                          : outlook == Outlook::kExpected ? (k + 3) / (4 * k)
                                                          : (k + 1) / (2 * k);
      for (const uint32_t i : chain.nodes) {
        StepGraph::Node& node = graph.nodes[i];
        node.duration_ns = static_cast<int64_t>(static_cast<double>(node.duration_ns) * left);
        if (const auto launch = LaunchOf(graph, i); launch && i != chain.nodes.front()) {
          LeaveOutCall(*launch, outlook == Outlook::kCautious ? 0 : kAllOfTheWay, graph);
        }
      }
    }
    return 0;
  }
};

class LowerPrecisionChange : public Change {
 public:
  std::string_view id() const override { return "precision"; }
  std::string_view does() const override { return "matrix products run on tensor cores, in 16 bit or TF32"; }
  std::string_view assumes() const override { return "a model that trains as well so"; }
  Cost cost() const override { return Cost::kNumerics; }
  std::optional<std::string> WhyNot(const StepGraph& graph) const override {
    if (graph.matrix_units == record::MatrixUnits::kNone) return "the device has no tensor cores";
    if (graph.matrix_units == record::MatrixUnits::kUnknown)
      return "whether the device has tensor cores is not known";
    if (PerStepNs(graph, IsPlainProduct) > 0) return std::nullopt;
    return "no matrix product was seen that runs without tensor cores";
  }
  double Apply(Outlook outlook, StepGraph& graph) const override {
    // Peak ratios are 8 and more (V100: 15.7 and 125 TFLOP/s; A100: 19.5 and 312), but products of training
    // are bound by memory as well: from 1.5x to 4x in NVIDIA's guide to mixed precision training.
    // Where the device and the shapes are known, they tell (roofline/precision.h).
    constexpr std::array<double, 3> kUsually = {1 / 1.5, 1 / 2.5, 1 / 4.0};
    // Autocast keeps activations in 16 bit: half of their bytes; normalisations and losses stay in 32 bit.
    constexpr std::array<double, 3> kOfElementwise = {1, 0.75, 0.55};
    const auto at = static_cast<size_t>(outlook);
    const double left = graph.left_on_tensor_cores[at] > 0 ? graph.left_on_tensor_cores[at] : kUsually[at];
    for (StepGraph::Node& node : graph.nodes) {
      const bool product = IsPlainProduct(node);
      if (!product && !(IsPointwise(node) && node.lane == Lane::kElementwise)) continue;
      node.duration_ns =
          static_cast<int64_t>(static_cast<double>(node.duration_ns) * (product ? left : kOfElementwise[at]));
    }
    const bool has_no_tf32 = graph.matrix_units == record::MatrixUnits::kFloat16;
    if (outlook == Outlook::kCautious || (has_no_tf32 && outlook == Outlook::kExpected)) AddCasts(graph);
    return 0;
  }

 private:
  static bool IsPlainProduct(const StepGraph::Node& node) {
    return node.work == Work::kDevice && node.lane == Lane::kMatmul;
  }
  // By autocast, the host casts the inputs of each product that takes 32 bit, and their gradients: operators that TF32
  // does not need. Forward two for a product, and two more for the two of backward ("Autocast Op Reference", PyTorch).
  static void AddCasts(StepGraph& graph) {
    constexpr double kCastsOfProduct = 4.0 / 3;
    const auto casts_ns = static_cast<int64_t>(kCastsOfProduct * OperatorNs(graph));
    for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
      const StepGraph::Node& node = graph.nodes[i];
      if (!IsPlainProduct(node) && !IsInTf32(node, graph)) continue;
      if (const auto launch = LaunchOf(graph, i)) graph.nodes[*launch].duration_ns += casts_ns;
    }
  }
  // As cuBLAS, CUTLASS and cuDNN name them. Kernels of 16 bit are called s1688, too, with their type beside it.
  static bool IsInTf32(const StepGraph::Node& node, const StepGraph& graph) {
    if (node.work != Work::kDevice || node.lane != Lane::kMatmulTensor) return false;
    const std::string& name = graph.names[node.name];
    const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
    return has("tf32") || (has("s1688") && !has("f16") && !has("fp16"));
  }
  // What the host does for a launch, in the model's passes.
  static double OperatorNs(const StepGraph& graph) {
    double host_ns = 0, launches = 0;
    for (const StepGraph::Node& node : graph.nodes) {
      if (!IsOfPasses(node.phase)) continue;
      if (node.work == Work::kHost || node.work == Work::kLaunch)
        host_ns += static_cast<double>(node.duration_ns);
      launches += node.work == Work::kLaunch;
    }
    return launches > 0 ? host_ns / launches : 0;
  }
};

// torch.utils.checkpoint and the like: what the forward pass had computed is computed again where the backward pass needs
// it, because it was not kept.
class NoRecomputationChange : public Change {
 public:
  std::string_view id() const override { return "no-recompute"; }
  std::string_view does() const override {
    return "activations are kept for the backward pass instead of computed again";
  }
  std::string_view assumes() const override { return "that they fit into the device's memory"; }
  Cost cost() const override { return Cost::kMemory; }
  bool removes() const override { return true; }
  std::optional<std::string> WhyNot(const StepGraph& graph) const override {
    if (PerStepNs(graph, IsAgain) > 0) return std::nullopt;
    return "nothing was seen to be computed again in the backward pass";
  }
  double Apply(Outlook outlook, StepGraph& graph) const override {
    // What is kept is written and read instead, by kernels that write and read as much as it is.
    constexpr std::array<double, 3> kLeft = {0.1, 0, 0};
    const double left = kLeft[static_cast<size_t>(outlook)];
    for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
      StepGraph::Node& node = graph.nodes[i];
      if (node.phase != Phase::kRecomputation) continue;
      node.duration_ns = static_cast<int64_t>(static_cast<double>(node.duration_ns) * left);
      for (uint32_t e = graph.first_edge[i]; e < graph.first_edge[i + 1]; ++e) {
        StepGraph::Edge& edge = graph.edges[e];
        if (edge.kind == Dependency::kStream && edge.lag_ns > 0 && !edge.from_begin)
          edge.lag_ns = static_cast<int64_t>(static_cast<double>(edge.lag_ns) * left);
        if (edge.kind == Dependency::kLaunch && left == 0) Drop(edge);
      }
    }
    return 0;
  }

 private:
  static bool IsAgain(const StepGraph::Node& node) {
    return node.work == Work::kDevice && node.phase == Phase::kRecomputation;
  }
};

}  // namespace

const Change* Compile() {
  static const CompileChange change;
  return &change;
}
const Change* LowerPrecision() {
  static const LowerPrecisionChange change;
  return &change;
}
const Change* NoRecomputation() {
  static const NoRecomputationChange change;
  return &change;
}

}  // namespace fullbore::replay
