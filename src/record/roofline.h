// How near the work of a rank's device comes to what the device can do: per operator and shape, per class of
// kernels, per step. From a trace with shapes; src/explain/roofline makes it.
//
// The attainable time of an operator is what the device's peaks allow: its arithmetic at the peak of its
// element type, or its least bytes (each input and output once) at the memory's bandwidth, whichever is
// longer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fullbore::record {

enum class Bound : uint8_t { kUnknown, kCompute, kMemory };

// Why an operator stays far from its limit, by its shape and its kernel.
enum class RooflineReason : uint8_t {
  kFewTiles,              // fewer blocks than multiprocessors
  kMisaligned,            // a dimension that is not a multiple of 16 bytes
  kThinProduct,           // a dimension of a product too short to fill a tile
  kSmallProducts,         // a batch of products each smaller than a tile
  kNoTensorCores,         // a matrix kernel without them where the device has them
  kFewChannels,           // a convolution of a picture with few channels
  kDepthwise,             // a convolution with one channel a group
  kGrouped,               // a convolution with few channels a group
  kDilated,               // a dilated convolution
  kLayout,                // tensors are converted to another layout around the kernel
  kAttentionUnfused,      // attention made of products and a softmax
  kAttentionSlow,         // fused attention that stays far from the peak
  kNormalisationUnfused,  // a normalisation made of elementwise kernels
  kElementwiseChain,      // one elementwise kernel after the other over the same elements
  kSmallKernels,          // small kernels around a large one
  kStrided,               // elements that do not lie side by side in memory
  kTiny,                  // so little work that starting a kernel takes longer
  kLowBandwidth,          // none of these: large and dense, and still far from the bandwidth
};

// "few-tiles": as reports and tables write it.
std::string_view Name(RooflineReason reason);

struct RooflineWhy {
  RooflineReason reason = RooflineReason::kTiny;
  std::string text;  // with this operator's figures: "8 blocks for 304 compute units"
};

struct RooflineOperator {
  std::string name;       // "aten::mm"
  std::string shape;      // "(8944, 1024) x (1024, 2816)"
  std::string type;       // of the elements: "bfloat16"
  std::string kind;       // "matrix", "convolution", "attention", "normalisation", "elementwise", ...
  std::string kernel;     // the kernel that takes most of its time
  int64_t count = 0;      // calls that launched kernels
  int64_t kernels = 0;    // that they launched
  int64_t device_ns = 0;  // of all those calls
  std::optional<double> flops, bytes;  // of one call; bytes: each input and output once
  Bound bound = Bound::kUnknown;
  std::optional<double> attainable_ns;  // of all calls; absent without a known device
  std::vector<RooflineWhy> why;         // the most specific first; only where far from the limit

  // The part of the attainable that was reached. Above 1 where tensors stayed in a cache.
  std::optional<double> Reached() const {
    if (!attainable_ns || device_ns <= 0) return std::nullopt;
    return *attainable_ns / static_cast<double>(device_ns);
  }
  double AboveNs() const {  // time above the attainable, 0 where unknown
    const double above = attainable_ns ? static_cast<double>(device_ns) - *attainable_ns : 0;
    return above > 0 ? above : 0;
  }
};

// Operators that follow one another over the same elements, each reading what the one before has written: one
// kernel could do it.
struct RooflineChain {
  std::vector<std::string> operators;  // in order: "aten::pow", "aten::mean", ...
  std::string shape;                   // of the largest tensor
  RooflineReason reason = RooflineReason::kElementwiseChain;
  int64_t elementary =
      0;  // of the operators, those that are one step of arithmetic: "aten::mul", "aten::tanh"
  int64_t count = 0;
  int64_t device_ns = 0;           // of all of them
  std::optional<double> fused_ns;  // if one kernel read the inputs and wrote the results
};

struct RooflineClass {
  std::string kernel_class;             // as in RankInfo::kernel_class_ns
  int64_t device_ns = 0;                // sums: kernels that overlap count twice
  int64_t judged_ns = 0;                // of that, kernels of operators whose work is known
  double flops = 0, bytes = 0;          // of the judged
  std::optional<double> attainable_ns;  // of the judged
};

// The steps of the trace, all of them together.
struct RooflineSteps {
  int64_t steps = 0;
  int64_t wall_ns = 0;
  int64_t device_ns = 0;          // kernels, without collectives and copies from and to the host
  int64_t judged_ns = 0;          // of that
  double matrix_flops = 0;        // of matrix products, convolutions and attention
  int64_t matrix_unknown_ns = 0;  // matrix kernels whose work is not known: they are missing in the flops
  // What the device would take at its limit; the kernels that are not judged at the time they took.
  std::optional<double> floor_ns;
  // Model FLOPs utilisation: matrix_flops over what the device's 16-bit peak would do in wall_ns.
  // Recomputed activations count as work, as profilers cannot tell them apart.
  std::optional<double> mfu;
  // The same against the peaks of the element types that were used.
  std::optional<double> mfu_of_types;
};

struct Roofline {
  std::string device;         // as the table calls it; empty where unknown, then nothing is attainable
  std::string device_source;  // where its figures are from
  double peak_16bit_flops = 0, bytes_per_s = 0;
  std::vector<RooflineOperator> operators;  // by time above the attainable, else by device time
  std::vector<RooflineClass> classes;       // by device time
  std::vector<RooflineChain> chains;        // by device time
  std::optional<RooflineSteps> steps;
  std::vector<std::string> notes;  // what readers have to know about the figures
};

}  // namespace fullbore::record
