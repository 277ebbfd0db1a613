#include "explain/roofline/other_device.h"

#include <algorithm>

namespace fullbore::roofline {
namespace {

using record::Arithmetic;
using record::Lane;
using record::Phase;
using record::StepGraph;
using timeline::ElementType;

// Of the peak, where no figure is published. Those that are: products 0.51 (MI300X) to 0.87 (A100), float32 0.58
// (MI300X), attention 0.27 and 0.37 forward, 0.15 and 0.33 backward (MI300X, H100), bandwidth 0.78 (MI300X) to 0.89
// (A100).
constexpr double kProductOfPeak = 0.7, kAttentionOfPeak = 0.32, kAttentionBackwardOfPeak = 0.24;
constexpr double kElementwiseOfPeak = 0.85;
// Published for devices of six years: from 1.7 us for additions to 9 and 28 us for attention. Assumed alike on both.
constexpr double kLeastUs = 2;

// How far from expected a ratio of two devices may be. In three programs that were recorded on both an H100 and an
// MI300X ([T] in devices.cc), products deviate from the ratio of the best ones by up to 1.4 (large) and 1.9 (small),
// elementwise kernels by 1.2 (softmax) to 1.75 (strided copies), the least times of one class among each other by 1.6.
constexpr double kSpreadOfArithmetic = 1.4, kSpreadOfMemory = 1.3, kSpreadOfLeast = 1.6;
constexpr double kMoreIfAssumed = 1.3;

// A figure of a device, and whether it had to be assumed.
struct Figure {
  double value = 0;
  bool assumed = false;
};

Figure Or(double published, double assumed) {
  return published > 0 ? Figure{published, false} : Figure{assumed, true};
}

enum class Kind { kProduct, kAttention, kReduction, kElementwise };

Kind KindOf(Lane lane) {
  switch (lane) {
    case Lane::kMatmulTensor:
    case Lane::kMatmul:
      return Kind::kProduct;
    case Lane::kAttention:
      return Kind::kAttention;
    case Lane::kReduction:
      return Kind::kReduction;
    default:
      return Kind::kElementwise;
  }
}

ElementType TypeOf(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kFloat32:
    case Arithmetic::kTensorFloat32:
      return ElementType::kFloat32;
    case Arithmetic::kFloat16:
      return ElementType::kFloat16;
    case Arithmetic::kBFloat16:
      return ElementType::kBFloat16;
    case Arithmetic::kFloat8:
      return ElementType::kFloat8;
    default:
      return ElementType::kUnknown;
  }
}

Figure BytesPerNs(const Device& device) {
  return Or(device.reached.elementwise_gb, kElementwiseOfPeak * device.bandwidth_gb);
}

Figure LeastNs(const Device& device, Kind kind) {
  const Reached& reached = device.reached;
  const double us = kind == Kind::kProduct     ? reached.least_product_us
                    : kind == Kind::kAttention ? reached.least_attention_us
                    : kind == Kind::kReduction ? reached.least_reduction_us
                                               : reached.least_elementwise_us;
  return Or(us * 1e3, kLeastUs * 1e3);
}

// FLOPs a nanosecond; 0 where the device cannot do it, or the table does not say.
Figure FlopsPerNs(const Device& device, Kind kind, Arithmetic arithmetic, Phase phase) {
  const auto peak =
      MatrixPeak(device, TypeOf(arithmetic), arithmetic != Arithmetic::kFloat32).value_or(0) / 1e9;
  const double peak_16bit = 1e3 * std::max(device.tflops.fp16, device.tflops.bf16);
  const Reached& reached = device.reached;
  if (kind == Kind::kAttention) {
    const bool backward = phase == Phase::kBackward;
    const double of_peak = backward ? kAttentionBackwardOfPeak : kAttentionOfPeak;
    const double published = backward ? reached.attention_backward_tflops : reached.attention_tflops;
    const Figure at_16bit = Or(published * 1e3, of_peak * peak_16bit);
    return {at_16bit.value * peak / peak_16bit, at_16bit.assumed};
  }
  if (arithmetic == Arithmetic::kFloat32) return Or(reached.product_fp32_tflops * 1e3, kProductOfPeak * peak);
  // Shorter and longer types reach as large a part of their own peak.
  const Figure at_16bit = Or(reached.product_tflops * 1e3, kProductOfPeak * peak_16bit);
  return {at_16bit.value * peak / peak_16bit, at_16bit.assumed};
}

// How many times as long the work takes on the other device.
struct Ratio {
  double value = 1;
  double spread = 1;
};

Ratio MemoryRatio(const Device& from, const Device& to) {
  const Figure here = BytesPerNs(from), there = BytesPerNs(to);
  return {here.value / there.value, kSpreadOfMemory * (here.assumed || there.assumed ? kMoreIfAssumed : 1)};
}

Ratio WorkRatio(const Device& from, const Device& to, const StepGraph& graph, const StepGraph::Node& node) {
  const Kind kind = KindOf(node.lane);
  const bool matrix = kind == Kind::kProduct || kind == Kind::kAttention;
  const StepGraph::Task& task = graph.tasks[node.task];
  if (!matrix || (node.task != 0 && task.flops <= 0)) return MemoryRatio(from, to);
  Arithmetic arithmetic = task.arithmetic;
  if (node.task == 0) arithmetic = node.lane == Lane::kMatmul ? Arithmetic::kFloat32 : Arithmetic::kFloat16;
  const Figure here = FlopsPerNs(from, kind, arithmetic, node.phase);
  const Figure there = FlopsPerNs(to, kind, arithmetic, node.phase);
  if (here.value <= 0 || there.value <= 0) return MemoryRatio(from, to);
  const double spread = kSpreadOfArithmetic * (here.assumed || there.assumed ? kMoreIfAssumed : 1);
  if (node.task == 0) return {here.value / there.value, spread};
  const auto longer = [&](const Figure& flops, const Device& device) {
    return std::max(task.flops / flops.value, task.bytes / BytesPerNs(device).value);
  };
  return {longer(there, to) / longer(here, from), spread};
}

// Of a kernel that memory limits, the part of what it takes beyond the least of its class that goes with its start. That is
// not the memory's where its bytes pass sooner than it starts: they lie in a cache, and it waits for its own latencies.
// All of it then, and nothing where they take much longer; between, by the squares of both.
double PartOfStart(const Device& from, Kind kind, const StepGraph::Task& task, double least_ns) {
  const bool memory = kind == Kind::kElementwise || kind == Kind::kReduction;
  if (!memory || task.bytes <= 0) return 0;
  const double passing_ns = task.bytes / BytesPerNs(from).value;
  return least_ns * least_ns / (least_ns * least_ns + passing_ns * passing_ns);
}

// Copies that keep to the bus, and those that nothing is known of here.
std::optional<Ratio> LinkRatio(const Device& from, const Device& to, Lane lane) {
  switch (lane) {
    case Lane::kH2dPinned:
    case Lane::kD2hPinned:
      return Ratio{from.bus_gb / to.bus_gb, 1};
    case Lane::kComm:
    case Lane::kH2dPageable:
    case Lane::kD2hPageable:
      return Ratio{};
    default:
      return std::nullopt;
  }
}

}  // namespace

OnAnother OnDevice(const Device& from, const Device& to, const StepGraph& graph,
                   const StepGraph::Node& operation) {
  const auto ns = static_cast<double>(operation.duration_ns);
  if (&from == &to) return {ns, ns, ns};
  if (const auto link = LinkRatio(from, to, operation.lane))
    return {ns * link->value, ns * link->value, ns * link->value};
  const Kind kind = KindOf(operation.lane);
  const Figure here = LeastNs(from, kind), there = LeastNs(to, kind);
  const bool both = !here.assumed && !there.assumed;
  const double least = both ? here.value : kLeastUs * 1e3;
  double starting = std::min(ns, least);
  starting += (ns - starting) * PartOfStart(from, kind, graph.tasks[operation.task], least);
  const double start_ns = both ? starting * there.value / here.value : starting;
  const double spread_of_start = kSpreadOfLeast * (both ? 1 : kMoreIfAssumed);
  const Ratio work = WorkRatio(from, to, graph, operation);
  const double work_ns = (ns - starting) * work.value;
  return {start_ns + work_ns, start_ns / spread_of_start + work_ns / work.spread,
          start_ns * spread_of_start + work_ns * work.spread};
}

}  // namespace fullbore::roofline
