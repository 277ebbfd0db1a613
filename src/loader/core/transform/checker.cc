#include "loader/core/transform/checker.h"

#include <fmt/format.h>

#include <cmath>

namespace fullbore::loader {

Result<void> Checker::Side(const char* argument, int value) const {
  if (value >= 1 && value <= kMaxSide) return {};
  return Wrong(argument, fmt::format("{}", value), fmt::format("1 to {}", kMaxSide));
}

Result<void> Checker::Sides(int height, int width) const {
  return First({Side("height", height), Side("width", width)});
}

Result<void> Checker::Interval(const char* argument, const std::array<double, 2>& value, double low,
                               double high) const {
  const bool ordered = value[0] <= value[1];  // false for NaN too
  if (ordered && value[0] >= low && value[1] <= high && std::isfinite(value[0]) && std::isfinite(value[1]))
    return {};
  const std::string range = std::isinf(high) && std::isinf(low) ? "finite numbers"
                            : std::isinf(high)                  ? fmt::format("numbers of at least {}", low)
                                                                : fmt::format("{} to {}", low, high);
  return Wrong(argument, fmt::format("({}, {})", value[0], value[1]), range + ", the lower one first");
}

Error Checker::Wrong(const std::string& argument, const std::string& value,
                     const std::string& allowed) const {
  return {ErrorCode::kInvalidArgument, fmt::format("{}: {} is {}", name_, argument, value),
          fmt::format("allowed: {}", allowed)};
}

Result<void> Checker::First(std::initializer_list<Result<void>> results) {
  for (const Result<void>& result : results) {
    if (!result.ok()) return result;
  }
  return {};
}

}  // namespace fullbore::loader
