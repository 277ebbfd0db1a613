// The work of one call of an operator: its arithmetic and the bytes that it has to move at least. Counted
// from shapes alone, as if every input were read once, every result written once, and nothing computed twice.
//
// Conventions, the same as TraceLens' unless docs/roofline.md says otherwise: a multiplication with its
// addition is two operations; a pointwise operator does one an element, a normalisation or a softmax five; a
// copy none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "timeline/device/operators.h"

namespace fullbore::roofline {

// `batch` products of an m x k with a k x n matrix.
struct Product {
  double batch = 1, m = 0, n = 0, k = 0;
  bool a_transposed = false;  // the rows of the first matrix do not lie side by side in memory
};

struct Convolution {
  double batch = 0, in_channels = 0, out_channels = 0;
  double in_pixels = 0, out_pixels = 0, kernel_pixels = 0;
  double groups = 1, dilation = 1;
  bool transposed = false;
  std::optional<bool> channels_last;  // as the strides of the input tell, where they were recorded
};

struct Attention {
  double batch = 0, heads = 0, queries = 0, keys = 0, head_size = 0;
  bool causal = false;
};

struct Work {
  std::optional<double> flops;  // absent where they do not follow from what is recorded
  std::optional<double> bytes;
  timeline::ElementType type = timeline::ElementType::kUnknown;  // of the arithmetic
  bool matrix = false;                                           // arithmetic for matrix units
  bool strided = false;  // the elements of an input do not lie side by side in memory
  double elements = 0;   // of the result
  std::variant<std::monostate, Product, Convolution, Attention> form;
};

// Which gradients a convolution's backward operator computes.
inline constexpr uint8_t kGradInput = 1, kGradWeight = 2;

// The size of a convolution's result by the dimensions of its input and its weight, learnt from the gradients
// in the same trace: PyTorch before 1.13 did not record strides and paddings. Absent where two results were
// seen.
using ConvolutionResults =
    std::map<std::pair<std::vector<int64_t>, std::vector<int64_t>>, std::optional<std::vector<int64_t>>>;

// What the trace knows beyond the operator's own arguments.
struct Context {
  timeline::ElementType list_type =
      timeline::ElementType::kUnknown;  // of lists of tensors, from the kernel's name
  uint8_t gradients = 0;                // as seen; 0: as the operator's arguments say
  const ConvolutionResults* convolution_results = nullptr;
};

// `name` is that of the operator. Nothing is known of an operator whose arguments are not what its kind
// expects.
Work WorkOf(const timeline::OperatorShape& shape, std::string_view name, const Context& context);

void Learn(const timeline::OperatorShape& shape, std::string_view name, ConvolutionResults* results);

// "(8944, 1024) x (1024, 2816)": the tensors among the arguments; "(3 tensors of 12,345)" for lists.
std::string ShapeText(const timeline::OperatorShape& shape);

}  // namespace fullbore::roofline
