// Ranks that differ, on the terminal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "explain/diagnose/nodes.h"
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
std::string RanksText(const StepGroup& group) {
  if (group.numbers.size() == 1) return fmt::format("rank {} {}", group.numbers[0], group.names[0]);
  return "ranks " + diagnose::RangesOf(group.numbers);
}

// "gpu-3 (ranks 24-31)", "gpu-1 and 14 others".
std::string NodesText(const StepGroup& group) {
  if (group.names.size() == 1)
    return fmt::format("{} ({})", group.names[0], diagnose::RangesOf(group.numbers));
  return fmt::format("{} and {} other{}", group.names[0], group.names.size() - 1,
                     group.names.size() > 2 ? "s" : "");
}

using Shares = std::map<std::string, double>;

bool Alike(double a_step_ns, const Shares& a, double b_step_ns, const Shares& b) {
  if (std::abs(a_step_ns - b_step_ns) > kRankDifference * std::min(a_step_ns, b_step_ns)) return false;
  for (const ShareLook& look : kShareLooks) {
    const auto ratio = [&](const Shares& shares) {
      const auto found = shares.find(std::string(look.name));
      return found == shares.end() ? 0.0 : found->second;
    };
    if (std::abs(ratio(a) - ratio(b)) > kRankDifference) return false;
  }
  return true;
}

// Adds ranks, or a machine with its own, to those that they are like.
void AddTo(std::vector<StepGroup>& groups, double mean_step_ns, const Shares& shares, const std::string& name,
           const std::vector<int>& numbers) {
  const auto like = [&](const StepGroup& group) {
    return Alike(group.mean_step_ns, *group.shares, mean_step_ns, shares);
  };
  auto group = std::ranges::find_if(groups, like);
  if (group == groups.end()) group = groups.insert(group, {mean_step_ns, &shares, {}, {}});
  group->names.push_back(name);
  group->numbers.insert(group->numbers.end(), numbers.begin(), numbers.end());
}

std::vector<StepGroup> GroupsOf(const diagnose::Diagnosis& d) {
  std::vector<StepGroup> groups;
  for (const diagnose::NodeSummary& node : d.nodes) {
    if (node.mean_step_ns > 0) AddTo(groups, node.mean_step_ns, node.shares, node.name, node.ranks);
  }
  if (!d.nodes.empty()) return groups;
  for (const diagnose::RankShares& rank : d.ranks)
    AddTo(groups, rank.mean_step_ns, rank.shares, rank.device, {rank.rank});
  return groups;
}

}  // namespace

void Screen::StepLine(const StepGroup& group, const std::string& name, int label_columns) {
  const std::string step =
      group.mean_step_ns > 0 ? FormatDuration(static_cast<int64_t>(group.mean_step_ns)) : "";
  const Piece bar = ShareBar(*group.shares, std::clamp(style_.width - 70, 10, kBarColumns), style_);
  const std::string label = Elide(name, label_columns, style_.unicode);
  std::vector<Piece> pieces{Paint(Pad(label, label_columns) + "  " + step, "", style_), bar};
  if (style_.width < kRankLegendColumns) {
    Flow(pieces, "  ", 2, 4);
    Flow(ShareLegendWithin(*group.shares, style_.width - 4, 2, style_), "  ", 4, 4);
    return;
  }
  const int room = style_.width - (2 + Columns(pieces[0].plain) + 2 + Columns(bar.plain) + 2);
  for (Piece& piece : ShareLegendWithin(*group.shares, room, 2, style_)) pieces.push_back(std::move(piece));
  Flow(pieces, "  ", 2, 4);
}

// One line for all ranks, or machines, that are alike, and none if all ranks are.
void Screen::Ranks() {
  const std::vector<StepGroup> groups = GroupsOf(d_);
  if (groups.size() < 2 && d_.nodes.empty()) return;
  Line();
  if (!d_.nodes.empty())
    Paragraph(fmt::format("{} machines, {} ranks", d_.nodes.size(), d_.ranks.size()), 2, 2, "");
  std::vector<std::string> names;
  int label_columns = 0;
  for (const StepGroup& group : groups) {
    names.push_back(Clean(d_.nodes.empty() ? RanksText(group) : NodesText(group)));
    label_columns = std::max(label_columns, Columns(names.back()));
  }
  for (size_t i = 0; i < std::min(groups.size(), kMaxRankLines); ++i)
    StepLine(groups[i], names[i], std::min(label_columns, 32));
  if (groups.size() > kMaxRankLines) {
    Paragraph("and more that differ, in the full report", 2, 2, kDim);
  }
}

}  // namespace fullbore::report
