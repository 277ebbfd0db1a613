#include "explain/diagnose/activity_shares.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

namespace fullbore::diagnose {

using record::Activity;
using record::HostOther;
using record::HotLine;
using record::Share;

namespace {

// A line does what at least this ratio of its samples was seen to do.
constexpr double kSpeaksForLine = 0.34;

using Line = std::pair<std::string, int>;

bool IsUnnamed(const HotLine& line) {
  return line.share == Share::kHostOther && line.part == HostOther::kUnnamed && line.samples > 0;
}

// What the samples of unknown activity at a line count for.
std::map<Line, Activity> ActivityOfLines(const std::vector<HotLine>& lines) {
  std::map<Line, std::array<int64_t, record::kActivityCount>> samples;
  for (const HotLine& line : lines) {
    if (IsUnnamed(line) && !line.file.empty())
      samples[{line.file, line.line}][static_cast<size_t>(line.activity)] += line.samples;
  }
  std::map<Line, Activity> activities;
  for (const auto& [line, by_activity] : samples) {
    int64_t all = 0;
    size_t most = static_cast<size_t>(Activity::kUnknown);
    for (size_t i = 0; i < by_activity.size(); ++i) {
      all += by_activity[i];
      const bool known =
          static_cast<Activity>(i) != Activity::kUnknown && static_cast<Activity>(i) != Activity::kPython;
      if (known && (most == 0 || by_activity[i] > by_activity[most])) most = i;
    }
    if (static_cast<double>(by_activity[most]) >= kSpeaksForLine * static_cast<double>(all))
      activities[line] = static_cast<Activity>(most);
  }
  return activities;
}

}  // namespace

Sampled SampledRatio(int64_t hits, int64_t samples) {
  if (samples <= 0) return {};
  constexpr double kZ = 1.96;
  const auto n = static_cast<double>(samples);
  const double p = static_cast<double>(hits) / n;
  const double middle = (p + kZ * kZ / (2 * n)) / (1 + kZ * kZ / n);
  const double half = kZ / (1 + kZ * kZ / n) * std::sqrt(p * (1 - p) / n + kZ * kZ / (4 * n * n));
  return {p, std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

std::vector<ActivityShare> ActivitySharesOf(const RankView& rank) {
  const std::vector<HotLine>& lines = rank.info->hot_lines;
  const std::map<Line, Activity> of_lines = ActivityOfLines(lines);
  struct AtLine {
    int64_t samples = 0;
    std::string text, library;
  };
  std::map<Activity, std::map<Line, AtLine>> samples;
  int64_t all = 0;
  for (const HotLine& line : lines) {
    if (!IsUnnamed(line)) continue;
    Activity activity = line.activity;
    const auto of_line = of_lines.find({line.file, line.line});
    const bool open = activity == Activity::kUnknown || activity == Activity::kPython;
    if (open && of_line != of_lines.end() && of_line->second != Activity::kUnknown)
      activity = of_line->second;
    auto& at = samples[activity][{line.file, line.line}];
    at.samples += line.samples;
    at.text = line.text;
    at.library = line.library;
    all += line.samples;
  }
  const double unnamed = rank.Ratio(HostOther::kUnnamed);
  std::vector<ActivityShare> shares;
  for (const auto& [activity, by_line] : samples) {
    ActivityShare share;
    share.activity = activity;
    for (const auto& [line, hits] : by_line) share.samples += hits.samples;
    share.of_step = SampledRatio(share.samples, all);
    for (double* ratio : {&share.of_step.ratio, &share.of_step.low, &share.of_step.high}) *ratio *= unnamed;
    for (const auto& [line, hits] : by_line) {
      if (line.first.empty()) continue;
      const double part = static_cast<double>(hits.samples) / static_cast<double>(share.samples);
      share.where.push_back({line.first, line.second, hits.text, part});
    }
    std::stable_sort(share.where.begin(), share.where.end(),
                     [](const Place& a, const Place& b) { return a.share > b.share; });
    if (!share.where.empty()) share.library = by_line.at({share.where[0].file, share.where[0].line}).library;
    shares.push_back(std::move(share));
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const ActivityShare& a, const ActivityShare& b) { return a.samples > b.samples; });
  return shares;
}

}  // namespace fullbore::diagnose
