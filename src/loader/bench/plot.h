// A flow as a terminal shows it: a table with a bar a row, then the verdict. Plain where it is piped.
#pragma once

#include <string>

#include "loader/bench/flow.h"

namespace fullbore::loader::bench {

struct PlotStyle {
  int width = 100;
  bool color = false;
  bool unicode = true;  // bars of block characters in eighths; else of '#'
};

// A bar of `share` (0 to 1) of `cells` character cells, without trailing blanks.
std::string Bar(double share, int cells, const PlotStyle& style);

// Ends with a line break. `wanted_samples_per_s` 0: nobody asked.
std::string ToTerminal(const Flow& flow, double wanted_samples_per_s, const PlotStyle& style);

}  // namespace fullbore::loader::bench
