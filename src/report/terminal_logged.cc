// What the script logs itself, on the terminal: from where to where, and the way as a line of blocks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "explain/diagnose/logged.h"
#include "report/terminal_screen.h"

namespace fullbore::report {

namespace {

using diagnose::LoggedMetric;
using diagnose::LoggedPoint;

constexpr size_t kMaxMetrics = 5, kMaxNameColumns = 32;
constexpr size_t kLineColumns = 24;
constexpr std::array<std::string_view, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

// The last value of each of kLineColumns equal stretches of time; NaN where there is none.
std::vector<double> Columned(const std::vector<LoggedPoint>& points) {
  std::vector<double> columns(kLineColumns, NAN);
  const int64_t begin_ns = points.front().t_ns, span_ns = points.back().t_ns - begin_ns + 1;
  for (const LoggedPoint& point : points) {
    const double part = static_cast<double>(point.t_ns - begin_ns) / static_cast<double>(span_ns);
    columns[std::min(kLineColumns - 1, static_cast<size_t>(part * kLineColumns))] = point.value;
  }
  return columns;
}

// "█▇▅▃▂▁▁", from its lowest value to its highest; empty where it has no way.
std::string LineOf(const std::vector<LoggedPoint>& points) {
  const auto [low, high] = std::ranges::minmax(points, {}, &LoggedPoint::value);
  const double span = high.value - low.value;
  if (!(span > 0) || !std::isfinite(span)) return "";
  std::string line;
  for (const double value : Columned(points)) {
    const double height = (value - low.value) / span * (kBlocks.size() - 1);
    line += std::isnan(value) ? " " : kBlocks[static_cast<size_t>(std::lround(height))];
  }
  return line;
}

std::string WayText(const LoggedMetric& metric) {
  if (metric.values == 0) return "";
  if (metric.values == 1) return diagnose::LoggedText(metric.last);
  return diagnose::LoggedText(metric.first) + " → " + diagnose::LoggedText(metric.last);
}

// What is not in the line, where it says something about the script.
std::string MissingText(const LoggedMetric& metric) {
  if (metric.not_finite > 0)
    return fmt::format("{} times NaN or infinite", FormatCount(static_cast<double>(metric.not_finite)));
  if (metric.on_device > 0)
    return fmt::format("{} values not read, which were still on a device",
                       FormatCount(static_cast<double>(metric.on_device)));
  return "";
}

}  // namespace

void Screen::Logged() {
  if (d_.logged.empty()) return;
  const std::span<const LoggedMetric> shown(d_.logged.data(), std::min(d_.logged.size(), kMaxMetrics));
  const auto name_of = [&](const LoggedMetric& metric) {
    return Elide(Clean(metric.name), static_cast<int>(kMaxNameColumns), style_.unicode);
  };
  int names = 0, ways = 0;
  for (const LoggedMetric& metric : shown) {
    names = std::max(names, Columns(name_of(metric)));
    ways = std::max(ways, Columns(Clean(WayText(metric))));
  }
  Line();
  Line(Paint("  logged by the script", kDim, style_).painted);
  for (const LoggedMetric& metric : shown) {
    const std::string way = Clean(WayText(metric)), missing = MissingText(metric);
    const std::string line = style_.unicode && !metric.points.empty() ? LineOf(metric.points) : "";
    const bool is_all = line.empty() && missing.empty();
    std::vector<Piece> pieces = {Plain(Pad(name_of(metric), names) + "  " + (is_all ? way : Pad(way, ways)))};
    if (!line.empty()) pieces.push_back(Plain(line));
    if (!missing.empty()) pieces.push_back(Painted(missing, "33"));
    Flow(pieces, "  ", 4, 6);
  }
  if (d_.logged.size() > shown.size())
    Paragraph(fmt::format("and {} more in the full report", d_.logged.size() - shown.size()), 4, 4, kDim);
}

}  // namespace fullbore::report
