#include <array>

#include "fullbore/loader.h"

namespace fullbore::loader {
namespace {

struct DTypeInfo {
  DType type;
  const char* name;
  size_t bytes;
};
constexpr std::array<DTypeInfo, 11> kDTypes = {{{DType::kUInt8, "uint8", 1},
                                                {DType::kInt64, "int64", 8},
                                                {DType::kFloat32, "float32", 4},
                                                {DType::kFloat64, "float64", 8},
                                                {DType::kFloat16, "float16", 2},
                                                {DType::kBFloat16, "bfloat16", 2},
                                                {DType::kInt32, "int32", 4},
                                                {DType::kInt16, "int16", 2},
                                                {DType::kInt8, "int8", 1},
                                                {DType::kUInt16, "uint16", 2},
                                                {DType::kBool, "bool", 1}}};

const DTypeInfo& InfoOf(DType type) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.type == type) return info;
  }
  CheckFailed("a known DType", __FILE__, __LINE__);
}

}  // namespace

size_t BytesOf(DType type) { return InfoOf(type).bytes; }
const char* NameOf(DType type) { return InfoOf(type).name; }

std::optional<DType> DTypeNamed(std::string_view name) {
  for (const DTypeInfo& info : kDTypes) {
    if (name == info.name) return info.type;
  }
  return std::nullopt;
}

}  // namespace fullbore::loader
