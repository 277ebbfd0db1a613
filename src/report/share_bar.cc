#include "report/share_bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/printable.h"
#include "base/text.h"

namespace fullbore::report {

namespace {

constexpr double kMinInLegend = 0.005;  // what FormatPercent rounds to one percent

struct Segment {
  const ShareLook* look;
  double share;
  int columns = 0;
  double remainder = 0;
};

std::vector<Segment> SegmentsOf(const std::map<std::string, double>& shares,
                                std::span<const ShareLook> looks = kShareLooks) {
  std::vector<Segment> segments;
  for (const ShareLook& look : looks) {
    const auto found = shares.find(std::string(look.name));
    if (found != shares.end() && found->second > 0) segments.push_back({&look, found->second});
  }
  return segments;
}

void Divide(std::vector<Segment>& segments, int columns) {
  double sum = 0;
  for (const Segment& segment : segments) sum += segment.share;
  int left = columns;
  for (Segment& segment : segments) {
    const double exact = segment.share / sum * columns;
    segment.columns = static_cast<int>(exact);
    segment.remainder = exact - segment.columns;
    left -= segment.columns;
  }
  std::vector<Segment*> by_remainder;
  for (Segment& segment : segments) by_remainder.push_back(&segment);
  std::stable_sort(by_remainder.begin(), by_remainder.end(),
                   [](const Segment* a, const Segment* b) { return a->remainder > b->remainder; });
  for (size_t i = 0; left > 0 && i < by_remainder.size(); ++i, --left) ++by_remainder[i]->columns;
}

std::string Glyph(const ShareLook& look, const TerminalStyle& style) {
  if (!style.unicode) return std::string(1, look.ascii);
  return std::string(style.color ? "█" : look.glyph);
}

std::string ColorOf(const ShareLook& look) { return fmt::format("38;5;{}", look.ansi); }

std::string NamedParts(const std::map<std::string, double>& parts) {
  std::string text;
  for (const auto& [name, ratio] : parts) {
    if (name == "unnamed" || ratio < kMinInLegend) continue;
    text += (text.empty() ? " (" : ", ") + name + " " + FormatPercent(ratio);
  }
  return text.empty() ? text : text + ")";
}

}  // namespace

Piece Paint(std::string text, std::string_view sgr, const TerminalStyle& style) {
  std::string painted = style.color && !sgr.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", sgr, text) : text;
  return {std::move(text), std::move(painted), sgr};
}

Piece ShareBar(const std::map<std::string, double>& shares, int columns, const TerminalStyle& style,
               std::span<const ShareLook> looks) {
  std::vector<Segment> segments = SegmentsOf(shares, looks);
  Divide(segments, columns);
  Piece bar;
  for (const Segment& segment : segments) {
    std::string text;
    for (int i = 0; i < segment.columns; ++i) text += Glyph(*segment.look, style);
    const Piece piece = Paint(text, text.empty() ? "" : ColorOf(*segment.look), style);
    bar.plain += piece.plain;
    bar.painted += piece.painted;
  }
  return bar;
}

Piece LegendEntry(const ShareLook& look, const std::string& text, const TerminalStyle& style) {
  const Piece key = Paint(Glyph(look, style), ColorOf(look), style);
  return {key.plain + " " + text, key.painted + " " + text};
}

std::vector<Piece> ShareLegend(const std::map<std::string, double>& shares,
                               const std::map<std::string, double>& host_other_parts,
                               const TerminalStyle& style) {
  std::vector<Piece> legend;
  for (const Segment& segment : SegmentsOf(shares)) {
    if (segment.share < kMinInLegend) continue;
    std::string text = fmt::format("{} {}", segment.look->label, FormatPercent(segment.share));
    if (segment.look->name == "host_other") text += NamedParts(host_other_parts);
    legend.push_back(LegendEntry(*segment.look, text, style));
  }
  return legend;
}

std::vector<Piece> ShareLegendWithin(const std::map<std::string, double>& shares, int columns, int gap,
                                     const TerminalStyle& style) {
  std::vector<std::pair<double, std::string>> by_size;
  for (const Segment& segment : SegmentsOf(shares)) by_size.emplace_back(segment.share, segment.look->name);
  std::stable_sort(by_size.begin(), by_size.end(), [](auto& a, auto& b) { return a.first > b.first; });
  std::vector<Piece> legend;
  for (size_t kept = by_size.size(); kept > 0; --kept) {
    std::map<std::string, double> largest;
    double rest = 0;
    for (size_t i = 0; i < by_size.size(); ++i) {
      if (i < kept) {
        largest[by_size[i].second] = by_size[i].first;
      } else {
        rest += by_size[i].first;
      }
    }
    legend = ShareLegend(largest, {}, style);
    if (rest >= kMinInLegend) legend.push_back(Paint("rest " + FormatPercent(rest), "", style));
    int taken = -gap;
    for (const Piece& piece : legend) taken += gap + Columns(piece.plain);
    if (taken <= columns) break;
  }
  return legend;
}

}  // namespace fullbore::report
