// Pointwise operators, and those that only move elements: copies, casts, fills, concatenations, lookups,
// pooling.
#include <algorithm>

#include "explain/roofline/tensors.h"

namespace fullbore::roofline {

using timeline::OperatorKind;

namespace {

bool OneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  if (name.starts_with("aten::")) name.remove_prefix(6);
  if (name.ends_with('_')) name.remove_suffix(1);
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool GivesTruth(std::string_view name) {
  return OneOf(name, {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor",
                      "logical_not", "isnan", "isinf", "isfinite"});
}

// The type of the results. The operands of aten::where and aten::masked_fill include a mask, which promotion
// leaves as it is.
ElementType ResultType(const OperatorShape& shape, std::string_view name) {
  if (timeline::IsInPlace(name)) return Input(shape, 0).type;
  if (GivesTruth(name)) return ElementType::kBool;
  const ElementType type = Promoted(shape);
  const bool divides =
      OneOf(name, {"div", "true_divide", "reciprocal", "exp", "log", "sqrt", "rsqrt", "sigmoid"});
  return divides && !timeline::IsFloating(type) && type != ElementType::kComplex64 ? ElementType::kFloat32
                                                                                   : type;
}

// A kernel reads its inputs in one order: where they lie in different orders, it jumps in one of them.
bool Strided(const OperatorShape& shape) {
  const OperatorInput* first = nullptr;
  for (const OperatorInput& input : shape.inputs) {
    if (!input.tensor() || input.strides.empty()) continue;
    if (!Dense(input)) return true;
    if (first == nullptr)
      first = &input;
    else if (input.dims == first->dims && input.strides != first->strides)
      return true;
  }
  return false;
}

void CountPool(const OperatorShape& shape, std::string_view name, Work* work) {
  const OperatorInput& input = Input(shape, 0);
  if (!input.tensor()) return;
  ByteSum bytes;
  if (name.ends_with("_backward")) {  // gradient, input (for its size), indices; the gradient of the input
    const OperatorInput& data = Input(shape, 1);
    bytes.Read(input);
    if (name.find("indices") != std::string_view::npos && !shape.inputs.empty())
      bytes.Read(shape.inputs.back());
    bytes.Add(Count(data.dims), data.type);
    work->elements = Count(data.dims);
  } else {
    const auto kernel = NumbersIn(Input(shape, 1).concrete), stride = NumbersIn(Input(shape, 2).concrete);
    const auto& step = stride.empty() ? kernel : stride;
    bytes.Read(input);
    if (!step.empty() && input.dims.size() >= 2) {  // else only what is read is known: a lower bound
      const double rows = static_cast<double>(std::max<int64_t>(1, step.front()));
      const double columns = static_cast<double>(std::max<int64_t>(1, step.back()));
      const double results = Count(input.dims) / rows / columns;
      bytes.Add(results, input.type);
      if (name.find("indices") != std::string_view::npos) bytes.Add(results, ElementType::kInt64);
    }
    work->elements = Count(input.dims);
  }
  work->flops = work->elements;
  work->bytes = bytes.sum();
  work->type = input.type;
}

void CountGather(const OperatorShape& shape, std::string_view name, Work* work) {
  const OperatorInput& source = Input(shape, 0);
  if (!source.tensor()) return;
  const bool table = name == "aten::embedding";  // else (source, dimension, index)
  const OperatorInput& index = Input(shape, table ? 1 : 2);
  if (!index.tensor()) return;
  double results = Count(index.dims);
  if (name != "aten::gather") {
    const auto where = NumbersIn(Input(shape, 1).concrete);
    const auto rank = static_cast<int64_t>(source.dims.size());
    int64_t dim = table || where.empty() ? 0 : where[0];
    if (dim < 0) dim += rank;
    if (dim < 0 || dim >= rank) return;
    for (int64_t i = 0; i < rank; ++i) {
      if (i != dim) results *= static_cast<double>(source.dims[static_cast<size_t>(i)]);
    }
  }
  ByteSum bytes;
  bytes.Read(index);
  bytes.Add(2 * results,
            source.type);  // read and written; elements that are not asked for stay where they are
  work->flops = 0;
  work->bytes = bytes.sum();
  work->type = source.type;
  work->elements = results;
}

void CountScatter(const OperatorShape& shape, std::string_view name, Work* work) {
  ByteSum bytes;
  if (name == "aten::embedding_dense_backward") {
    const OperatorInput& gradient = Input(shape, 0);
    const auto rows = NumbersIn(Input(shape, 2).concrete);
    if (!gradient.tensor()) return;
    bytes.Read(gradient);
    bytes.Read(Input(shape, 1));
    if (!rows.empty() && rows[0] > 0)
      bytes.Add(static_cast<double>(rows[0]) * static_cast<double>(gradient.dims.back()), gradient.type);
    work->elements = Count(gradient.dims);
    work->type = gradient.type;
  } else {  // (self, dimension, index, source): the touched elements are read and written
    const OperatorInput& source = Input(shape, 3);
    if (!source.tensor()) return;
    bytes.Read(Input(shape, 2));
    bytes.Read(source);
    bytes.Add(2 * Count(source.dims), source.type);
    work->elements = Count(source.dims);
    work->type = source.type;
  }
  work->flops = work->elements;
  work->bytes = bytes.sum();
}

}  // namespace

void CountElementwise(const OperatorShape& shape, std::string_view name, Work* work) {
  const auto result = Broadcast(shape);
  if (!result || result->empty()) return;
  ByteSum bytes;
  for (const OperatorInput& input : shape.inputs) bytes.Read(input);
  work->strided = Strided(shape);
  const double results =
      timeline::IsInPlace(name) && Input(shape, 0).tensor() ? Count(Input(shape, 0).dims) : Count(*result);
  work->type = ResultType(shape, name);
  bytes.Add(results, work->type);
  if (OneOf(name, {"native_dropout", "_fused_dropout"})) bytes.Add(results, ElementType::kBool);  // the mask
  work->flops = results;
  work->bytes = bytes.sum();
  work->elements = results;
}

void CountMoves(const OperatorShape& shape, std::string_view name, const Context& context, Work* work) {
  const OperatorInput& first = Input(shape, 0);
  ByteSum bytes;
  switch (shape.kind) {
    case OperatorKind::kCopy: {
      const OperatorInput& source = Input(shape, 1);
      if (!first.tensor()) return;
      bytes.Add(Count(first.dims), first.type);
      bytes.Read(source);
      work->strided = Strided(shape);
      work->elements = Count(first.dims);
      break;
    }
    case OperatorKind::kFill:
      if (!first.tensor()) return;
      bytes.Add(Count(first.dims), first.type);
      work->elements = Count(first.dims);
      break;
    case OperatorKind::kConcatenation:
      if (first.list_elements == 0) return;
      bytes.Add(2 * static_cast<double>(first.list_elements), context.list_type);
      work->elements = static_cast<double>(first.list_elements);
      break;
    case OperatorKind::kTriton:  // everything that it reads or writes is an argument
      for (const OperatorInput& input : shape.inputs) {
        bytes.Read(input);
        work->elements = std::max(work->elements, Count(input.dims));
      }
      if (work->elements == 0) return;
      work->bytes = bytes.sum();
      work->type = Promoted(shape);
      return;  // its arithmetic is not known
    case OperatorKind::kGather:
      return CountGather(shape, name, work);
    case OperatorKind::kScatter:
      return CountScatter(shape, name, work);
    case OperatorKind::kPool:
      return CountPool(shape, name, work);
    default:
      return;
  }
  work->flops = 0;
  work->bytes = bytes.sum();
  work->type = shape.kind == OperatorKind::kConcatenation ? context.list_type : first.type;
}

}  // namespace fullbore::roofline
