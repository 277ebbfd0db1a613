#include "loader/core/transform/plan_check.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace fullbore::loader {
namespace {

constexpr int kMaxSide = 65'535;  // JPEG's; a larger output is a mistake

// Says which argument of which transform is wrong.
class Checker {
 public:
  explicit Checker(std::string name) : name_(std::move(name)) {}

  Result<void> Side(const char* argument, int value) const {
    if (value >= 1 && value <= kMaxSide) return {};
    return Wrong(argument, fmt::format("{}", value), fmt::format("1 to {}", kMaxSide));
  }

  Result<void> Interval(const char* argument, const std::array<double, 2>& value, double low,
                        double high) const {
    const bool ordered = value[0] <= value[1];  // false for NaN too
    if (ordered && value[0] >= low && value[1] <= high && std::isfinite(value[0]) &&
        std::isfinite(value[1])) {
      return {};
    }
    const std::string range = std::isinf(high) && std::isinf(low) ? "finite numbers"
                              : std::isinf(high)                  ? fmt::format("numbers of at least {}", low)
                                                                  : fmt::format("{} to {}", low, high);
    return Wrong(argument, fmt::format("({}, {})", value[0], value[1]), range + ", the lower one first");
  }

  Error Wrong(const std::string& argument, const std::string& value, const std::string& allowed) const {
    return {ErrorCode::kInvalidArgument, fmt::format("{}: {} is {}", name_, argument, value),
            fmt::format("allowed: {}", allowed)};
  }

 private:
  std::string name_;
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Result<void> First(std::initializer_list<Result<void>> results) {
  for (const Result<void>& result : results) {
    if (!result.ok()) return result;
  }
  return {};
}

Result<void> Check(const Checker& checker, const Resize& resize) {
  if (auto height = checker.Side("height", resize.height); !height.ok()) return height;
  if (resize.width != 0) {
    if (auto width = checker.Side("width", resize.width); !width.ok()) return width;
  }
  if (resize.max_size == 0) return {};
  if (resize.width != 0) {
    return checker.Wrong("max_size", fmt::format("{}", resize.max_size),
                         fmt::format("0 if width is given (here {})", resize.width));
  }
  if (resize.max_size > resize.height && resize.max_size <= kMaxSide) return {};
  return checker.Wrong(
      "max_size", fmt::format("{}", resize.max_size),
      fmt::format("0 for none, or more than height ({}) and at most {}", resize.height, kMaxSide));
}

Result<void> Check(const Checker& checker, const CenterCrop& crop) {
  return First({checker.Side("height", crop.height), checker.Side("width", crop.width)});
}

Result<void> Check(const Checker& checker, const RandomResizedCrop& crop) {
  // The smallest float: a ratio of 0 has no logarithm.
  return First({checker.Side("height", crop.height), checker.Side("width", crop.width),
                checker.Interval("scale", crop.scale, 0, kInfinity),
                checker.Interval("ratio", crop.ratio, std::numeric_limits<float>::min(), kInfinity)});
}

Result<void> Check(const Checker& checker, const RandomHorizontalFlip& flip) {
  if (flip.p >= 0 && flip.p <= 1) return {};
  return checker.Wrong("p", fmt::format("{}", flip.p), "0 to 1");
}

Result<void> Check(const Checker& checker, const ColorJitter& jitter) {
  return First({checker.Interval("brightness", jitter.brightness, 0, kInfinity),
                checker.Interval("contrast", jitter.contrast, 0, kInfinity),
                checker.Interval("saturation", jitter.saturation, 0, kInfinity),
                checker.Interval("hue", jitter.hue, -0.5, 0.5)});
}

Result<void> Check(const Checker& checker, const RandomRotation& rotation) {
  return checker.Interval("degrees", rotation.degrees, -kInfinity, kInfinity);
}

Result<void> Check(const Checker& checker, const Normalize& normalize) {
  for (size_t c = 0; c < 3; ++c) {
    const float mean = normalize.mean[c], std = normalize.std[c];
    if (!std::isfinite(mean)) {
      return checker.Wrong(fmt::format("mean[{}]", c), fmt::format("{}", mean), "finite numbers");
    }
    if (!std::isfinite(std) || std == 0) {
      return checker.Wrong(fmt::format("std[{}]", c), fmt::format("{}", std), "finite numbers other than 0");
    }
  }
  return {};
}

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
    const char* name = NameOf(transforms[i]);
    const Checker checker(fmt::format("transform {}, {}", i + 1, name));
    auto checked =
        std::visit([&](const auto& transform) { return Check(checker, transform); }, transforms[i]);
    if (!checked.ok()) return checked;
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
