// A flow for the terminal: a table with a bar per row, then the verdict. Plain if it is piped.
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

// Ends with a newline. `wanted_samples_per_s` 0: no rate was requested.
std::string ToTerminal(const Flow& flow, double wanted_samples_per_s, const PlotStyle& style);

}  // namespace fullbore::loader::bench
