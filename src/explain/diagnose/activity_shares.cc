#include "explain/diagnose/activity_shares.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "explain/diagnose/places.h"

namespace fullbore::diagnose {

using record::Activity;
using record::HostOther;
using record::HotLine;
using record::Share;

namespace {

// A line, or a block of lines, does what at least this ratio of its samples was seen to do.
constexpr double kSpeaksForLine = 0.34;
// Lines of one function with no more than this between them are one piece of work: as people set off code by a blank
// line, a comment or a condition.
constexpr int kWithinBlock = 3;

using Line = std::pair<std::string, int>;

struct AtLine {
  std::string function;
  std::array<int64_t, record::kActivityCount> samples{};
};

bool IsUnnamed(const HotLine& line) {
  return line.share == Share::kHostOther && line.part == HostOther::kUnnamed && line.samples > 0;
}

bool IsOpen(Activity activity) { return activity == Activity::kUnknown || activity == Activity::kPython; }

// What is done "every N steps" if at all: then what stands around it, which prepares it, is not done either.
bool TakesItsBlockAlong(Activity activity) {
  return activity == Activity::kLogging || activity == Activity::kPlotting ||
         activity == Activity::kMetrics || activity == Activity::kFile;
}

// What speaks for these samples; unknown if nothing does.
Activity MainActivity(const std::array<int64_t, record::kActivityCount>& samples) {
  int64_t all = 0;
  size_t most = static_cast<size_t>(Activity::kUnknown);
  for (size_t i = 0; i < samples.size(); ++i) {
    all += samples[i];
    if (!IsOpen(static_cast<Activity>(i)) && samples[i] > 0 &&
        (most == static_cast<size_t>(Activity::kUnknown) || samples[i] > samples[most]))
      most = i;
  }
  const bool speaks = static_cast<double>(samples[most]) >= kSpeaksForLine * static_cast<double>(all);
  return speaks ? static_cast<Activity>(most) : Activity::kUnknown;
}

// Lines at which the training itself was seen more often than anything beside it.
std::set<Line> TrainingLines(const std::vector<HotLine>& lines) {
  std::map<Line, int64_t> balance;
  for (const HotLine& line : lines)
    balance[{line.file, line.line}] += line.share == Share::kHostOther ? -line.samples : line.samples;
  std::set<Line> training;
  for (const auto& [line, more] : balance) {
    if (more > 0) training.insert(line);
  }
  return training;
}

using Lines = std::map<Line, AtLine>;

// Consecutive lines that are one piece of work, with no line of the training between them.
std::vector<std::vector<Lines::const_iterator>> Blocks(const Lines& lines, const std::set<Line>& training) {
  std::vector<std::vector<Lines::const_iterator>> blocks;
  for (auto at = lines.begin(); at != lines.end(); ++at) {
    const auto starts = [&] {
      if (blocks.empty()) return true;
      const auto& before = *blocks.back().back();
      const auto between = training.upper_bound(before.first);
      return before.first.first != at->first.first || before.second.function != at->second.function ||
             at->first.second - before.first.second > kWithinBlock ||
             (between != training.end() && *between <= at->first);
    };
    if (starts()) blocks.emplace_back();
    blocks.back().push_back(at);
  }
  return blocks;
}

// What each line's samples count for, by what was seen there: those of which it is not known what they do, and, in a
// block that logs, those of its files.
std::map<std::pair<Line, Activity>, Activity> Readings(const std::vector<HotLine>& hot_lines) {
  Lines lines;
  for (const HotLine& line : hot_lines) {
    if (!IsUnnamed(line) || line.file.empty()) continue;
    AtLine& at = lines[{line.file, line.line}];
    at.function = line.function;
    at.samples[static_cast<size_t>(line.activity)] += line.samples;
  }
  std::map<std::pair<Line, Activity>, Activity> readings;
  for (const auto& block : Blocks(lines, TrainingLines(hot_lines))) {
    std::array<int64_t, record::kActivityCount> samples{};
    for (const auto& line : block) {
      for (size_t i = 0; i < samples.size(); ++i) samples[i] += line->second.samples[i];
    }
    // Who writes a log opens and flushes its file.
    const bool logs = samples[static_cast<size_t>(Activity::kLogging)] > 0;
    if (logs) {
      samples[static_cast<size_t>(Activity::kLogging)] += samples[static_cast<size_t>(Activity::kFile)];
      samples[static_cast<size_t>(Activity::kFile)] = 0;
    }
    const Activity of_block = MainActivity(samples);
    for (const auto& line : block) {
      Activity open = MainActivity(line->second.samples);
      if (TakesItsBlockAlong(of_block)) open = of_block;
      for (const Activity from : {Activity::kUnknown, Activity::kPython}) {
        if (open != Activity::kUnknown) readings[{line->first, from}] = open;
      }
      if (logs && of_block == Activity::kLogging)
        readings[{line->first, Activity::kFile}] = Activity::kLogging;
    }
  }
  return readings;
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
  const auto readings = Readings(lines);
  struct Hits {
    int64_t samples = 0, slow_samples = 0;
    std::string text, library;
  };
  std::map<Activity, std::map<Line, Hits>> samples;
  int64_t all = 0;
  for (const HotLine& line : lines) {
    if (!IsUnnamed(line)) continue;
    const auto reading = readings.find({{line.file, line.line}, line.activity});
    const Activity activity = reading == readings.end() ? line.activity : reading->second;
    auto& at = samples[activity][{line.file, line.line}];
    at.samples += line.samples;
    at.slow_samples += line.slow_samples;
    at.text = line.text;
    at.library = line.library;
    all += line.samples;
  }
  const double unnamed = rank.Ratio(HostOther::kUnnamed);
  std::vector<ActivityShare> shares;
  for (const auto& [activity, by_line] : samples) {
    ActivityShare share;
    share.activity = activity;
    for (const auto& [line, hits] : by_line) {
      share.samples += hits.samples;
      share.slow_samples += hits.slow_samples;
    }
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
    std::erase_if(share.where, [](const Place& place) { return !IsPlaceToEdit(place.file, place.text); });
    for (Place& place : share.where) place.file = FileOrModule(place.file);
    shares.push_back(std::move(share));
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const ActivityShare& a, const ActivityShare& b) { return a.samples > b.samples; });
  return shares;
}

bool PlaysInAnEnvironment(const RankView& rank) {
  // Fewer samples of an environment may be a distribution that a loss is computed with.
  constexpr int64_t kSamplesOfEnvironment = 3;
  if (rank.Ratio(HostOther::kWithoutGradients) <= 0) return false;
  return std::ranges::any_of(ActivitySharesOf(rank), [](const ActivityShare& share) {
    return share.activity == Activity::kEnvironment && share.samples >= kSamplesOfEnvironment;
  });
}

double WaitForEnvironments(const RankView& rank) {
  if (rank.TrainingLoader() || !PlaysInAnEnvironment(rank)) return 0;
  int64_t receives = 0, others = 0;
  for (const HotLine& line : rank.info->hot_lines) {
    if (line.share == Share::kDataWait) (IsWaitForOthers(line.activity) ? receives : others) += line.samples;
  }
  return receives > others ? rank.Ratio(Share::kDataWait) : 0;
}

}  // namespace fullbore::diagnose
