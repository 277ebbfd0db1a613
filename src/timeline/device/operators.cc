#include "timeline/device/operators.h"

#include <algorithm>
#include <array>

namespace fullbore::timeline {
namespace {

struct TypeName {
  std::string_view name;
  ElementType type;
};

// As C10 writes the types of tensors ("c10::BFloat16", "long int"), and as ScalarType calls them ("Half").
constexpr TypeName kTypeNames[] = {{"float", ElementType::kFloat32},
                                   {"Float", ElementType::kFloat32},
                                   {"c10::BFloat16", ElementType::kBFloat16},
                                   {"BFloat16", ElementType::kBFloat16},
                                   {"c10::Half", ElementType::kFloat16},
                                   {"Half", ElementType::kFloat16},
                                   {"double", ElementType::kFloat64},
                                   {"Double", ElementType::kFloat64},
                                   {"long int", ElementType::kInt64},
                                   {"long", ElementType::kInt64},
                                   {"long long", ElementType::kInt64},
                                   {"Long", ElementType::kInt64},
                                   {"int", ElementType::kInt32},
                                   {"Int", ElementType::kInt32},
                                   {"unsigned int", ElementType::kInt32},
                                   {"short", ElementType::kInt16},
                                   {"short int", ElementType::kInt16},
                                   {"Short", ElementType::kInt16},
                                   {"signed char", ElementType::kInt8},
                                   {"unsigned char", ElementType::kInt8},
                                   {"Char", ElementType::kInt8},
                                   {"Byte", ElementType::kInt8},
                                   {"bool", ElementType::kBool},
                                   {"Bool", ElementType::kBool},
                                   {"c10::complex<float>", ElementType::kComplex64},
                                   {"ComplexFloat", ElementType::kComplex64}};

}  // namespace

ElementType TypeNamed(std::string_view name) {
  for (const TypeName& known : kTypeNames) {
    if (known.name == name) return known.type;
  }
  // "c10::Float8_e4m3fn", "Float8_e5m2fnuz", ...: one byte each.
  return name.find("Float8_") != std::string_view::npos ? ElementType::kFloat8 : ElementType::kUnknown;
}

std::string_view Name(ElementType type) {
  constexpr std::array<std::string_view, 12> kNames = {"unknown",  "float64", "float32",   "float16",
                                                       "bfloat16", "float8",  "complex64", "int64",
                                                       "int32",    "int16",   "int8",      "bool"};
  return kNames[static_cast<size_t>(type)];
}

int64_t ElementBytes(ElementType type) {
  switch (type) {
    case ElementType::kFloat64:
    case ElementType::kInt64:
    case ElementType::kComplex64:
      return 8;
    case ElementType::kFloat32:
    case ElementType::kInt32:
      return 4;
    case ElementType::kFloat16:
    case ElementType::kBFloat16:
    case ElementType::kInt16:
      return 2;
    case ElementType::kFloat8:
    case ElementType::kInt8:
    case ElementType::kBool:
      return 1;
    case ElementType::kUnknown:
      return 0;
  }
  return 0;
}

bool IsFloating(ElementType type) {
  return type == ElementType::kFloat64 || type == ElementType::kFloat32 || type == ElementType::kFloat16 ||
         type == ElementType::kBFloat16 || type == ElementType::kFloat8;
}

int64_t Elements(const std::vector<int64_t>& dims) {
  int64_t elements = 1;
  for (const int64_t dim : dims) elements *= dim;
  return elements;
}

std::optional<uint16_t> OperatorLog::Find(uint64_t key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? std::nullopt : std::optional<uint16_t>(found->second);
}

uint16_t OperatorLog::Add(uint64_t key, OperatorShape shape) {
  if (shapes.size() >= kMaxShapes) return 0;  // not remembered either: the map would grow without limit
  size_t numbers = 0;
  for (const OperatorInput& input : shape.inputs)
    numbers += 1 + input.dims.size() + input.strides.size() + input.concrete.size() / sizeof(int64_t);
  if (numbers_ + numbers > kMaxNumbers) return 0;
  numbers_ += numbers;
  const auto number = static_cast<uint16_t>(shapes.size());
  by_key_[key] = number;
  shapes.push_back(std::move(shape));
  return number;
}

void OperatorLog::Drop(OperatorKind kind) {
  const auto rest = std::remove_if(calls.begin(), calls.end(),
                                   [&](const OperatorCall& call) { return shapes[call.shape].kind == kind; });
  calls.resize_down(static_cast<size_t>(rest - calls.begin()));
}

void OperatorLog::Sort() {
  const auto outer_first = [](const OperatorCall& a, const OperatorCall& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.duration_ns > b.duration_ns;
  };
  if (!std::is_sorted(calls.begin(), calls.end(), outer_first))
    std::stable_sort(calls.begin(), calls.end(), outer_first);
}

}  // namespace fullbore::timeline
