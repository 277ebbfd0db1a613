#include "explain/roofline/operators.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "explain/roofline/tensors.h"

namespace fullbore::roofline {

using timeline::OperatorKind;

namespace {

std::string Dimensions(const std::vector<int64_t>& dims) {
  std::string text = "(";
  for (const int64_t dim : dims) text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + ")";
}

}  // namespace

Work WorkOf(const OperatorShape& shape, std::string_view name, const Context& context) {
  Work work;
  if (shape.inputs.empty()) return work;
  switch (shape.kind) {
    case OperatorKind::kMatrix:
      CountProduct(shape, name, &work);
      break;
    case OperatorKind::kConvolution:
      CountConvolution(shape, context, &work);
      break;
    case OperatorKind::kConvolutionBackward:
      CountConvolutionBackward(shape, name, context, &work);
      break;
    case OperatorKind::kAttention:
    case OperatorKind::kAttentionBackward:
      CountAttention(shape, name, &work);
      break;
    case OperatorKind::kMoe:
      CountMoe(shape, &work);
      break;
    case OperatorKind::kNormalisation:
    case OperatorKind::kNormalisationBackward:
    case OperatorKind::kSoftmax:
    case OperatorKind::kSoftmaxBackward:
      CountNormalisation(shape, &work);
      break;
    case OperatorKind::kReduction:
      CountReduction(shape, name, &work);
      break;
    case OperatorKind::kElementwise:
      CountElementwise(shape, name, &work);
      break;
    case OperatorKind::kCopy:
    case OperatorKind::kFill:
    case OperatorKind::kConcatenation:
    case OperatorKind::kGather:
    case OperatorKind::kScatter:
    case OperatorKind::kPool:
    case OperatorKind::kTriton:
      CountMoves(shape, name, context, &work);
      break;
    case OperatorKind::kOptimizer:
      CountOptimizer(shape, name, context, &work);
      break;
    case OperatorKind::kNone:
    case OperatorKind::kTable:
    case OperatorKind::kConvolutionPart:
    case OperatorKind::kAttentionMath:
    case OperatorKind::kNormalisationMath:
      break;
  }
  return work;
}

std::string_view Name(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::kMatrix:
      return "matrix";
    case OperatorKind::kConvolution:
    case OperatorKind::kConvolutionBackward:
    case OperatorKind::kConvolutionPart:
      return "convolution";
    case OperatorKind::kAttention:
    case OperatorKind::kAttentionBackward:
    case OperatorKind::kAttentionMath:
      return "attention";
    case OperatorKind::kMoe:
      return "experts";
    case OperatorKind::kNormalisation:
    case OperatorKind::kNormalisationBackward:
    case OperatorKind::kNormalisationMath:
      return "normalisation";
    case OperatorKind::kSoftmax:
    case OperatorKind::kSoftmaxBackward:
      return "softmax";
    case OperatorKind::kReduction:
      return "reduction";
    case OperatorKind::kElementwise:
      return "elementwise";
    case OperatorKind::kCopy:
      return "copy";
    case OperatorKind::kFill:
      return "fill";
    case OperatorKind::kConcatenation:
      return "concatenation";
    case OperatorKind::kGather:
    case OperatorKind::kScatter:
    case OperatorKind::kTable:
      return "lookup";
    case OperatorKind::kPool:
      return "pooling";
    case OperatorKind::kOptimizer:
      return "optimizer";
    case OperatorKind::kTriton:
      return "compiled";
    case OperatorKind::kNone:
      return "other";
  }
  return "other";
}

timeline::ElementType TypeInKernelName(std::string_view name) {
  struct Mark {
    std::string_view text;
    ElementType type;
  };
  // CatArray knows only the size: "OpaqueType<2u>" may be any type of two bytes.
  constexpr std::array<Mark, 8> kMarks = {{{"OpaqueType<8u", ElementType::kInt64},
                                           {"OpaqueType<4u", ElementType::kInt32},
                                           {"OpaqueType<2u", ElementType::kInt16},
                                           {"OpaqueType<1u", ElementType::kInt8},
                                           {"c10::BFloat16", ElementType::kBFloat16},
                                           {"c10::Half", ElementType::kFloat16},
                                           {"<double", ElementType::kFloat64},
                                           {"<float", ElementType::kFloat32}}};
  for (const Mark& mark : kMarks) {
    if (name.find(mark.text) != std::string_view::npos) return mark.type;
  }
  return ElementType::kUnknown;
}

std::string ShapeText(const OperatorShape& shape) {
  constexpr size_t kMaxShown = 4;
  std::string text;
  size_t shown = 0;
  for (const OperatorInput& input : shape.inputs) {
    if (!input.tensor() && input.list_tensors == 0) continue;
    if (++shown > kMaxShown) return text + " ...";
    if (!text.empty()) text += " x ";
    text += input.tensor() ? Dimensions(input.dims)
                           : fmt::format("{} tensors of {}", input.list_tensors,
                                         FormatCount(static_cast<double>(input.list_elements)));
  }
  return text;
}

}  // namespace fullbore::roofline
