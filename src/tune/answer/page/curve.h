// Throughput over the setting that was varied in size: the batch, or else the workers. One line for each
// combination of the other settings.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tune/search/search.h"

namespace fullbore::tune {

struct Curve {
  struct Point {
    double x;
    size_t trial;  // its index in what was given
  };
  struct Line {
    std::string others;         // "num_workers=4"; empty: none
    std::vector<Point> points;  // the least x first
  };
  std::string name;       // of the setting: "batch_size"
  bool doubling = false;  // its axis is logarithmic
  std::vector<Line> lines;
};

// Of trials with different settings, measured or not. Those that leave the setting as it is have the value of
// the script, where that is known. Nothing where there are not two values of either.
std::optional<Curve> CurveOf(std::span<const Trial> trials, const Known& known);

}  // namespace fullbore::tune
