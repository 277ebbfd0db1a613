#include "watch/alert/figure.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"

namespace fullbore::watch {

std::string Figure(double value, std::string_view unit) {
  if (unit == "ratio") return FormatPercent(value);
  if (unit == "bytes") return FormatBytes(value);
  if (unit == "bytes/s") return FormatBytes(value) + "/s";
  if (unit == "s") return FormatDuration(std::llround(value * 1e9));
  if (unit == "ns") return FormatDuration(std::llround(value));
  return FormatCount(value) + (unit.empty() || unit == "count" ? "" : fmt::format(" {}", unit));
}

}  // namespace fullbore::watch
