// The pace of the steps: slower than before, or none at all.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/text.h"
#include "explain/diagnose/statistics.h"
#include "explain/diagnose/thresholds.h"
#include "record/metrics.h"
#include "watch/alert/sight.h"

namespace fullbore::watch {

namespace {

// How many stretches, each as long as what is looked at, make a past: with fewer, its noise is not known.
constexpr size_t kFewestStretches = 6;
constexpr double kOutsideNoise =
    4;  // standard deviations; at one look every few seconds, 3 is chance now and then
constexpr double kToDeviation = 1.4826;  // of the median deviation, for normal noise
constexpr double kNearly = 0.8;          // of the threshold: below it, an alert is over
constexpr int64_t kFewestSteps = 20;     // before a pause is unusual
constexpr double kLongerThanEver = 1.5;  // times the longest pause so far
constexpr double kMorePatience = 10;     // where something still computes

constexpr double kUntilKnownNs = 5e9;

struct Rate {
  double steps_per_s = 0, samples_per_s = 0;
};

std::optional<Rate> RateOf(const std::vector<Pace>& paces, int64_t begin_ns, int64_t end_ns) {
  int64_t steps = 0, samples = 0, working_ns = 0;
  const auto first = std::ranges::upper_bound(paces, begin_ns, {}, &Pace::end_ns);
  for (auto pace = first; pace != paces.end() && pace->end_ns <= end_ns; ++pace) {
    steps += pace->steps;
    samples += pace->samples;
    working_ns += pace->working_ns;
  }
  if (steps == 0 || working_ns <= 0) return std::nullopt;
  const double seconds = static_cast<double>(working_ns) / 1e9;
  return Rate{static_cast<double>(steps) / seconds, static_cast<double>(samples) / seconds};
}

}  // namespace

Sight ThroughputDrop::Look(const View& view) const {
  const std::vector<Pace>& paces = view.moment.past().paces();
  const int64_t now_ns = view.moment.now_ns();
  const auto now = RateOf(paces, now_ns - view.window_ns, now_ns);
  if (!now) return {};
  const bool samples = view.moment.past().samples_known() && now->samples_per_s > 0;
  const auto figure = [&](const Rate& rate) { return samples ? rate.samples_per_s : rate.steps_per_s; };
  // The first stretch is the warm-up's, and what is slow since the drop is not what is usual.
  std::vector<double> past;
  for (int64_t end_ns = std::min(now_ns, view.since_ns.value_or(now_ns)) - view.window_ns;
       end_ns - 2 * view.window_ns >= view.moment.past().first_step_ns(); end_ns -= view.window_ns) {
    if (const auto rate = RateOf(paces, end_ns - view.window_ns, end_ns)) past.push_back(figure(*rate));
  }
  if (past.size() < kFewestStretches) return {};
  const double usual = diagnose::Median(past);
  std::vector<double> deviations;
  for (const double rate : past) deviations.push_back(std::abs(rate - usual));
  const double noise = usual > 0 ? kOutsideNoise * kToDeviation * diagnose::Median(deviations) / usual : 0;
  const double drop = usual > 0 ? 1 - figure(*now) / usual : 0;
  const double threshold = std::max(above, noise);
  Sight sight;
  sight.state = drop > threshold             ? Sight::State::kHolds
                : drop < kNearly * threshold ? Sight::State::kOver
                                             : Sight::State::kBetween;
  const char* unit = samples ? "samples/s" : "steps/s";
  sight.what = fmt::format("{} {}, {} {} than the usual {}", FormatCount(figure(*now)), unit,
                           FormatPercent(std::abs(drop)), drop >= 0 ? "less" : "more", FormatCount(usual));
  sight.evidence = {{"throughput now", figure(*now), unit, "hook", "", now_ns - view.window_ns, now_ns},
                    {"usual", usual, unit, "hook", "", {}, {}},
                    {"drops up to this are noise", noise, "ratio", "hook", "", {}, {}}};
  sight.fix = {
      "`fullbore explain` of the run says where the time goes now; `fullbore top` what else the machine "
      "does"};
  sight.lost = std::clamp(drop, 0.0, 1.0);
  return sight;
}

Sight NoSteps::Look(const View& view) const {
  const Past& past = view.moment.past();
  if (past.steps() < kFewestSteps) return {};
  std::vector<double> longest;
  double longest_ever = 0;
  for (const Pace& pace : past.paces()) {
    const auto ns = static_cast<double>(pace.longest_ns);
    if (!longest.empty()) longest_ever = std::max(longest_ever, ns);  // the first one is the warm-up's
    longest.push_back(ns);
  }
  const double usual_ns = diagnose::Median(longest);
  const auto pause_ns = static_cast<double>(view.moment.now_ns() - past.last_step_ns());
  const double unusual_ns = std::max(above * usual_ns, kLongerThanEver * longest_ever);
  Sight sight;
  if (pause_ns <= unusual_ns) {
    sight.state = Sight::State::kOver;
    sight.what = "steps go on";
    return sight;
  }
  const auto cores = view.moment.CoresSince(past.last_step_ns());
  const auto on_this_machine = std::ranges::count(view.moment.stage().ranks, 0, &record::RankInfo::node);
  const double ranks = std::max<double>(1, static_cast<double>(on_this_machine));
  const bool computes = cores && *cores >= diagnose::kNothingComputes * ranks;
  if (!cores && pause_ns < kUntilKnownNs) return {};  // its first readings are about to come
  const bool too_long = !computes || pause_ns > unusual_ns + kMorePatience * static_cast<double>(view.for_ns);
  sight.state = too_long ? Sight::State::kHolds : Sight::State::kBetween;
  sight.what = fmt::format("no step for {}, usually {}", FormatDuration(std::llround(pause_ns)),
                           FormatDuration(std::llround(usual_ns)));
  if (cores)
    sight.what +=
        computes ? fmt::format("; {} cores compute", FormatCount(*cores)) : ", and nothing computes";
  sight.evidence = {
      {"since the last step", pause_ns / 1e9, "s", "hook", "", past.last_step_ns(), view.moment.now_ns()},
      {"longest usual step", usual_ns / 1e9, "s", "hook", "", {}, {}},
      {"longest step so far", longest_ever / 1e9, "s", "hook", "", {}, {}}};
  if (cores)
    sight.evidence.push_back(
        {"cores that the command has used since then", *cores, "cores", "proc", "process_cpu", {}, {}});
  sight.fix = {
      view.moment.stage().ranks.size() > 1
          ? "find the missing rank: py-spy dump on each rank; docs: fullbore help hang"
          : "find out what it waits for: py-spy dump --pid PID of the training process; fullbore help hang"};
  sight.lost = 1;
  sight.since_ns = past.last_step_ns();
  return sight;
}

}  // namespace fullbore::watch
