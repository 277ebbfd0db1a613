#include "explain/roofline/tensors.h"

#include <algorithm>
#include <charconv>

namespace fullbore::roofline {
namespace {

// Within a category the wider type wins, and a higher category over any width.
int Rank(ElementType type) {
  switch (type) {
    case ElementType::kUnknown:
      return 0;
    case ElementType::kBool:
      return 1;
    case ElementType::kInt8:
      return 2;
    case ElementType::kInt16:
      return 3;
    case ElementType::kInt32:
      return 4;
    case ElementType::kInt64:
      return 5;
    case ElementType::kFloat8:
      return 6;
    case ElementType::kFloat16:
    case ElementType::kBFloat16:
      return 7;
    case ElementType::kFloat32:
      return 8;
    case ElementType::kFloat64:
      return 9;
    case ElementType::kComplex64:
      return 10;
  }
  return 0;
}

}  // namespace

const OperatorInput& Input(const OperatorShape& shape, size_t i) {
  static const OperatorInput kNoInput;
  return i < shape.inputs.size() ? shape.inputs[i] : kNoInput;
}

double Count(const std::vector<int64_t>& dims) {
  double elements = 1;
  for (const int64_t dim : dims) elements *= static_cast<double>(dim);
  return elements;
}

double Stored(const OperatorInput& input) {
  if (input.strides.empty()) return Count(input.dims);
  double elements = 1;
  for (size_t i = 0; i < input.dims.size(); ++i) {
    if (input.strides[i] != 0 || input.dims[i] == 0) elements *= static_cast<double>(input.dims[i]);
  }
  return elements;
}

bool Dense(const OperatorInput& input) {
  if (input.strides.empty()) return true;
  std::vector<std::pair<int64_t, int64_t>> by_stride;
  for (size_t i = 0; i < input.dims.size(); ++i) {
    if (input.dims[i] > 1 && input.strides[i] != 0) by_stride.emplace_back(input.strides[i], input.dims[i]);
  }
  std::sort(by_stride.begin(), by_stride.end());
  int64_t expected = 1;
  for (const auto& [stride, dim] : by_stride) {
    if (stride != expected) return false;
    if (__builtin_mul_overflow(expected, dim, &expected)) return false;
  }
  return true;
}

ElementType Promoted(const OperatorShape& shape) {
  ElementType type = ElementType::kUnknown;
  for (const OperatorInput& input : shape.inputs) {
    if (!input.tensor()) continue;
    if (Rank(input.type) == Rank(type) && input.type != type)
      type = ElementType::kFloat32;  // half with bfloat16
    if (Rank(input.type) > Rank(type)) type = input.type;
  }
  return type;
}

std::optional<std::vector<int64_t>> Broadcast(const OperatorShape& shape) {
  std::vector<int64_t> result;
  for (const OperatorInput& input : shape.inputs) {
    const size_t length = input.dims.size();
    if (length > result.size()) result.insert(result.begin(), length - result.size(), 1);
    for (size_t i = 0; i < length; ++i) {
      int64_t& dim = result[result.size() - length + i];
      if (dim == 1)
        dim = input.dims[i];
      else if (input.dims[i] != 1 && input.dims[i] != dim)
        return std::nullopt;
    }
  }
  // Each dimension is one of an input's, and yet their product may be beyond any memory.
  return Count(result) <= 1e15 ? std::optional(result) : std::nullopt;
}

std::vector<int64_t> NumbersIn(std::string_view text) {
  std::vector<int64_t> numbers;
  const char* p = text.data();
  const char* const end = p + text.size();
  while (p < end) {
    int64_t number = 0;
    const auto [after, status] = std::from_chars(p, end, number);
    if (status == std::errc()) numbers.push_back(number);
    p = after == p ? p + 1 : after;
  }
  return numbers;
}

bool IsTrue(std::string_view text) { return text == "True" || text == "true" || text == "1"; }

}  // namespace fullbore::roofline
