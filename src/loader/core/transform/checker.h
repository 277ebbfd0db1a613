// Says which argument of which transform is wrong.
#pragma once

#include <array>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>

#include "fullbore/loader.h"

namespace fullbore::loader {

class Checker {
 public:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  explicit Checker(std::string name) : name_(std::move(name)) {}

  Result<void> Side(const char* argument, int value) const;  // of an image, in pixels
  Result<void> Sides(int height, int width) const;
  // The lower one first, both within the limits.
  Result<void> Interval(const char* argument, const std::array<double, 2>& value, double low,
                        double high) const;
  Error Wrong(const std::string& argument, const std::string& value, const std::string& allowed) const;
  static Result<void> First(std::initializer_list<Result<void>> results);  // that is an error, if any is

 private:
  std::string name_;
};

inline constexpr int kMaxSide = 65'535;  // JPEG's; a larger output is a mistake

}  // namespace fullbore::loader
