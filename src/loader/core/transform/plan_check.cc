#include "loader/core/transform/plan_check.h"

#include <fmt/format.h>

#include "loader/core/transform/checker.h"
#include "loader/core/transform/kind.h"

namespace fullbore::loader {
namespace {

bool IsImageDType(DType dtype) {
  return dtype == DType::kUInt8 || dtype == DType::kFloat32 || dtype == DType::kFloat16 ||
         dtype == DType::kBFloat16;
}

}  // namespace

Result<void> CheckTransforms(const std::vector<Transform>& transforms, const ImagePlanOptions& options) {
  if (!IsImageDType(options.dtype)) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("images cannot be {}", NameOf(options.dtype)),
                 "allowed: uint8, float32, float16, bfloat16"};
  }
  for (size_t i = 0; i < transforms.size(); ++i) {
    const TransformKind& kind = KindOf(transforms[i]);
    const Checker checker(fmt::format("transform {}, {}", i + 1, kind.name));
    if (auto checked = kind.check(checker, transforms[i]); !checked.ok()) return checked;
    if (!std::holds_alternative<Normalize>(transforms[i])) continue;
    if (options.dtype == DType::kUInt8) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("transform {}, Normalize: its results do not fit dtype uint8", i + 1),
                   "leave Normalize out, or choose float32, float16 or bfloat16"};
    }
    if (i + 1 < transforms.size()) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("transform {}, {}: comes after Normalize", i + 2, NameOf(transforms[i + 1])),
                   "Normalize must be the last transform"};
    }
  }
  return {};
}

}  // namespace fullbore::loader
