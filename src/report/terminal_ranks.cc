// Ranks that differ, on the terminal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/palette.h"
#include "report/terminal_screen.h"

namespace fullbore::report {

namespace {

constexpr size_t kMaxRankLines = 8;
constexpr int kRankLegendColumns = 72;  // below this width, a rank's legend takes a line of its own

// Ranks that differ by this much are shown separately: five percentage points of a share, or 5 % of the step
// (the smallest difference that any finding is based on).
constexpr double kRankDifference = 0.05;

// "ranks 0-4,6", "rank 5 cuda:5": consecutive numbers are joined; the device is shown for a single rank only.
std::string RanksText(const RankGroup& group) {
  if (group.size() == 1) return fmt::format("rank {} {}", group[0]->rank, group[0]->device);
  std::string text = "ranks ";
  for (size_t i = 0; i < group.size();) {
    size_t last = i;
    while (last + 1 < group.size() && group[last + 1]->rank == group[last]->rank + 1) ++last;
    if (i > 0) text += ",";
    text += std::to_string(group[i]->rank);
    if (last > i) text += fmt::format("-{}", group[last]->rank);
    i = last + 1;
  }
  return text;
}

bool Alike(const diagnose::RankShares& a, const diagnose::RankShares& b) {
  if (std::abs(a.mean_step_ns - b.mean_step_ns) >
      kRankDifference * std::min(a.mean_step_ns, b.mean_step_ns)) {
    return false;
  }
  for (const ShareLook& look : kShareLooks) {
    const auto ratio = [&](const auto& shares) {
      const auto found = shares.find(std::string(look.name));
      return found == shares.end() ? 0.0 : found->second;
    };
    if (std::abs(ratio(a.shares) - ratio(b.shares)) > kRankDifference) return false;
  }
  return true;
}

std::vector<RankGroup> GroupsOf(const std::vector<diagnose::RankShares>& ranks) {
  std::vector<RankGroup> groups;
  for (const diagnose::RankShares& rank : ranks) {
    const auto like = [&](const RankGroup& group) { return Alike(*group.front(), rank); };
    const auto group = std::find_if(groups.begin(), groups.end(), like);
    if (group == groups.end()) {
      groups.push_back({&rank});
    } else {
      group->push_back(&rank);
    }
  }
  return groups;
}

}  // namespace

void Screen::RankLine(const RankGroup& group, int label_columns) {
  const diagnose::RankShares& rank = *group.front();
  const std::string step = rank.steps > 0 ? FormatDuration(static_cast<int64_t>(rank.mean_step_ns)) : "";
  const Piece bar = ShareBar(rank.shares, std::clamp(style_.width - 70, 10, kBarColumns), style_);
  const std::string label = Elide(Clean(RanksText(group)), label_columns, style_.unicode);
  std::vector<Piece> pieces{Paint(Pad(label, label_columns) + "  " + step, "", style_), bar};
  if (style_.width < kRankLegendColumns) {
    Flow(pieces, "  ", 2, 4);
    Flow(ShareLegendWithin(rank.shares, style_.width - 4, 2, style_), "  ", 4, 4);
    return;
  }
  const int room = style_.width - (2 + Columns(pieces[0].plain) + 2 + Columns(bar.plain) + 2);
  for (Piece& piece : ShareLegendWithin(rank.shares, room, 2, style_)) pieces.push_back(std::move(piece));
  Flow(pieces, "  ", 2, 4);
}

// One line for all ranks that are alike, and none if all ranks are.
void Screen::Ranks() {
  const std::vector<RankGroup> groups = GroupsOf(d_.ranks);
  if (groups.size() < 2) return;
  int label_columns = 0;
  for (const RankGroup& group : groups)
    label_columns = std::max(label_columns, Columns(Clean(RanksText(group))));
  Line();
  for (size_t i = 0; i < std::min(groups.size(), kMaxRankLines); ++i)
    RankLine(groups[i], std::min(label_columns, 24));
  if (groups.size() > kMaxRankLines) {
    Paragraph("and more that differ, in the full report", 2, 2, kDim);
  }
}

}  // namespace fullbore::report
