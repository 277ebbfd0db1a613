// Operators made by hand, for tests: their arguments as a profiler would have recorded them.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "explain/roofline/work.h"
#include "timeline/device/operators.h"

namespace fullbore::roofline {

using timeline::ElementType;
using timeline::OperatorInput;
using timeline::OperatorShape;

// The types that most tests need.
inline constexpr ElementType kF32 = ElementType::kFloat32, kBf16 = ElementType::kBFloat16,
                             kF16 = ElementType::kFloat16, kI64 = ElementType::kInt64;

inline OperatorInput Tensor(std::vector<int64_t> dims, ElementType type = kF32,
                            std::vector<int64_t> strides = {}) {
  OperatorInput input;
  input.dims = std::move(dims);
  input.type = type;
  input.strides = std::move(strides);
  return input;
}
inline OperatorInput Value(std::string concrete) {
  OperatorInput input;
  input.concrete = std::move(concrete);
  return input;
}
inline OperatorInput List(int64_t tensors, int64_t elements) {
  OperatorInput input;
  input.list_tensors = tensors;
  input.list_elements = elements;
  return input;
}

inline OperatorShape Called(std::string_view name, std::vector<OperatorInput> inputs) {
  OperatorShape shape;
  shape.kind = timeline::KindOfOperator(name);
  shape.inputs = std::move(inputs);
  return shape;
}

inline Work Counted(std::string_view name, std::vector<OperatorInput> inputs, const Context& context = {}) {
  return WorkOf(Called(name, std::move(inputs)), name, context);
}

}  // namespace fullbore::roofline
