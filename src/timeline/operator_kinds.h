// What framework operators do, recognised by their names: which of them are worth keeping with their shapes,
// and by which rule their work is counted.
//
// Only operators that launch kernels themselves are here, and not the ones around them: aten::conv2d and
// aten::linear leave the work to aten::convolution and aten::addmm. Where both may launch, the inner one
// counts (explain/roofline/tie.h).
#pragma once

#include <cstdint>
#include <string_view>

namespace fullbore::timeline {

enum class OperatorKind : uint8_t {
  kNone,
  // Work for matrix units.
  kMatrix,
  kConvolution,
  kConvolutionBackward,
  kConvolutionPart,  // one of the gradients inside kConvolutionBackward, as PyTorch until 1.10 calls them
  kAttention,
  kAttentionBackward,
  kAttentionMath,  // attention that is made of other operators
  kMoe,            // mixture of experts in one operator
  // Work for memory.
  kNormalisation,
  kNormalisationBackward,
  kNormalisationMath,  // made of other operators
  kSoftmax,
  kSoftmaxBackward,
  kReduction,
  kElementwise,
  kCopy,
  kFill,
  kConcatenation,
  kGather,
  kScatter,
  kPool,
  kOptimizer,
  kTable,   // looks up rows of a table, or adds to them; kept only where the CPU computes
  kTriton,  // a kernel that torch.compile wrote, with all its arguments
};

OperatorKind KindOfOperator(std::string_view name);

// Whether the values of the arguments, not only their shapes, decide about the work: strides of a
// convolution, the dimensions of a sum.
bool ConcretesMatter(OperatorKind kind);

constexpr bool IsMatrixWork(OperatorKind kind) {
  return kind >= OperatorKind::kMatrix && kind <= OperatorKind::kMoe;
}

// Whether the operator writes into its first argument: "aten::add_".
inline bool IsInPlace(std::string_view name) { return name.ends_with('_') && !name.ends_with("__"); }

}  // namespace fullbore::timeline
