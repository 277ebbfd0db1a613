// Normalisations, softmax and reductions: several operations an element, and bytes decide.
#include <algorithm>

#include "explain/roofline/tensors.h"

namespace fullbore::roofline {

using timeline::OperatorKind;

namespace {

// Mean, difference, square, its mean, scaling; or maximum, difference, exponential, sum, quotient.
constexpr double kOperationsPerElement = 5;

const OperatorInput* Largest(const OperatorShape& shape) {
  const OperatorInput* largest = nullptr;
  for (const OperatorInput& input : shape.inputs) {
    if (input.tensor() && (largest == nullptr || Count(input.dims) > Count(largest->dims))) largest = &input;
  }
  return largest;
}

// Results of a reduction over the dimensions in its argument; nothing where they were not recorded.
std::optional<double> Results(const OperatorShape& shape) {
  const OperatorInput& input = shape.inputs[0];
  const std::string_view text = Input(shape, 1).concrete;
  if (shape.inputs.size() > 1 && text.empty()) return std::nullopt;
  const auto over = NumbersIn(text);
  if (over.empty()) return 1;
  double results = Count(input.dims);
  const auto rank = static_cast<int64_t>(input.dims.size());
  for (int64_t dim : over) {
    if (dim < 0) dim += rank;
    if (dim < 0 || dim >= rank) return std::nullopt;
    results /= std::max(1.0, static_cast<double>(input.dims[static_cast<size_t>(dim)]));
  }
  return results;
}

}  // namespace

void CountNormalisation(const OperatorShape& shape, Work* work) {
  const OperatorInput* data = Largest(shape);
  if (data == nullptr) return;
  const double elements = Count(data->dims);
  const bool backward =
      shape.kind == OperatorKind::kNormalisationBackward || shape.kind == OperatorKind::kSoftmaxBackward;
  ByteSum bytes;
  bytes.Add(elements, data->type);
  ElementType result = data->type;
  if (shape.kind == OperatorKind::kSoftmax && IsTrue(Input(shape, 2).concrete) && ElementBytes(result) < 4)
    result = ElementType::kFloat32;  // half_to_float
  bytes.Add(elements, result);
  if (backward) bytes.Add(elements, data->type);  // the gradient of the result, and the input or the result
  // Weights and biases. What an operator saves for its backward pass is as small.
  for (const OperatorInput& input : shape.inputs) {
    if (input.tensor() && &input != data && Count(input.dims) < elements) bytes.Read(input);
  }
  work->flops = kOperationsPerElement * elements * (backward ? 2 : 1);
  work->bytes = bytes.sum();
  work->type = data->type;
  work->elements = elements;
  work->strided = !Dense(*data);
}

void CountReduction(const OperatorShape& shape, std::string_view name, Work* work) {
  const OperatorInput& input = Input(shape, 0);
  if (!input.tensor()) return;
  const bool two_inputs = Input(shape, 1).tensor();  // aten::max(a, b) is pointwise
  if (two_inputs) return CountElementwise(shape, name, work);
  const double elements = Count(input.dims);
  const bool variance =
      name.find("var") != std::string_view::npos || name.find("std") != std::string_view::npos;
  ByteSum bytes;
  bytes.Read(input);
  bytes.Add(Results(shape).value_or(0), input.type);
  work->flops = elements * (variance ? 3 : 1);  // difference, square, sum; else one
  work->bytes = bytes.sum();
  work->type = input.type;
  work->elements = elements;
  work->strided = !Dense(input);
}

}  // namespace fullbore::roofline
