#include "tune/proof/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/text.h"
#include "explain/diagnose/between_starts.h"
#include "explain/diagnose/statistics.h"

namespace fullbore::tune {

namespace {

// Less than that of a burst bends no slice by more than half of it.
constexpr double kNoBurst = 1.02;
// Of so many half-widths at 95 %: both programs of eight pairs are looked at, and hardly ever for nothing.
constexpr double kSureOfBurst = 1.8;
// A program becomes faster in its first seconds (a ResNet on two cores by 12 % after two of them), and waits a little
// less: not by more than that.
constexpr double kNotFaster = 1.25, kWaitsNoLess = 0.05;

// By how much (standard deviation) slow steps of their own may differ between a program and its variant where it is not
// told from chance: by that, or by so much of all slowness that was seen. With a tenth of it, intervals denied slow steps
// that they could not tell (SlicesTest.SlowStepsThatAreHardToTellFromNeighboursAreNotDenied).
constexpr double kOwnSlowness = 0.005, kOwnOfSlowness = 0.3;
// A difference of so many standard errors may be no chance, but slow steps of the programs' own. Where it is chance after
// all, as of one pair in twenty, the interval is only wider.
constexpr double kTold = 2;
constexpr double kNormal95 = 1.96;
// There is time for five pairs, because the intervals of fewer are wide whatever they tell (Student's t); a fifth of a pair
// is kept for ending them.
constexpr double kUsefulPairs = 5.2, kLastPair = 1.2;
// No slice is all pause: rates without it go into logarithms.
constexpr double kLeastRunning = 1e-3;
// Of so many that came it is known how often they come: their own spread says it.
constexpr size_t kEnoughToKnow = 5;
// On each side, what is left out of a trimmed mean.
constexpr double kTrimmed = 0.25;

double Mean(const std::vector<Slice>& slices, double Slice::*rate) {
  double work = 0, seconds = 0;
  for (const Slice& slice : slices) {
    work += slice.*rate * slice.seconds;
    seconds += slice.seconds;
  }
  return seconds > 0 ? work / seconds : 0;
}

double StandardError(const std::vector<double>& values, double mean) {
  double squares = 0;
  for (const double value : values) squares += std::pow(value - mean, 2);
  const auto count = static_cast<double>(values.size());
  return std::sqrt(squares / (count - 1) / count);
}

// With its standard error, and the half-width of its 95 % interval.
struct Known {
  double mean = 0, error = 0, half_width = 0;
};
Known KnownOf(double mean, double error, size_t values) {
  return {mean, error, diagnose::StudentT95(values - 1) * error};
}

// At least two values.
Known MeanOf(const std::vector<double>& values) {
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  return KnownOf(mean, StandardError(values, mean), values.size());
}

// What is trimmed, on each side.
size_t TrimmedOf(const std::vector<double>& values) {
  return static_cast<size_t>(kTrimmed * static_cast<double>(values.size()));
}

// With the largest and the smallest values drawn in to the others.
std::vector<double> DrawnIn(std::vector<double> values) {
  std::vector<double> sorted = values;
  std::ranges::sort(sorted);
  const size_t out = TrimmedOf(values);
  for (double& value : values) value = std::clamp(value, sorted[out], sorted[sorted.size() - 1 - out]);
  return values;
}

// Without the largest and the smallest, and its error from the values with these drawn in (Tukey and McLaughlin 1963).
Known TrimmedMeanOf(std::vector<double> values) {
  const std::vector<double> drawn_in = DrawnIn(values);
  std::ranges::sort(values);
  const size_t out = TrimmedOf(values), kept = values.size() - 2 * out;
  double mean = 0;
  for (size_t i = out; i < out + kept; ++i) mean += values[i] / static_cast<double>(kept);
  const double error = StandardError(drawn_in, MeanOf(drawn_in).mean);
  return KnownOf(mean, error * static_cast<double>(values.size()) / static_cast<double>(kept), kept);
}

// Of the logarithm of the ratio, with the half-width of its 95 % interval.
struct Ratio {
  double log = 0, half_width = 1;  // open where there are not two
};
// `slowness`: how much slower than an undisturbed step the mean of both was.
Ratio RatioOf(const std::vector<double>& of_all, const std::vector<double>& of_undisturbed, double slowness) {
  const size_t count = of_all.size();
  if (count < 2) return {count == 0 ? 0 : of_all.front(), 1};
  std::vector<double> differences;  // how much slower the first was made, by slow steps and by slow slices
  const std::vector<double> usual_slices = DrawnIn(of_undisturbed);
  for (size_t i = 0; i < count; ++i) differences.push_back(of_all[i] - usual_slices[i]);
  const Known own = MeanOf(differences);
  if (std::abs(own.mean) > kTold * own.error) {
    const Known all = MeanOf(of_all);
    return {all.mean, all.half_width};
  }
  // The best guess of two that are normally distributed: what was seen, and what is usual.
  const double usual = std::max(kOwnSlowness, kOwnOfSlowness * slowness);
  const double weight = std::pow(usual, 2) / (std::pow(usual, 2) + std::pow(own.error, 2));
  const Known undisturbed = TrimmedMeanOf(of_undisturbed);
  const double unknown = std::sqrt(1 - weight) * usual;
  return {undisturbed.mean + weight * own.mean, std::hypot(undisturbed.half_width, kNormal95 * unknown)};
}

// By how much less than before it may wait by chance: what it was before comes from as long as a few slices are.
double WaitedByChance(const std::vector<Slice>& slices) {
  constexpr double kSlicesBefore = 3;
  std::vector<double> waited;
  for (const Slice& slice : slices) waited.push_back(slice.waited);
  if (waited.size() < 2) return 0;
  const double error = MeanOf(waited).error;
  return kTold * error * std::sqrt(1 + static_cast<double>(waited.size()) / kSlicesBefore);
}

}  // namespace

std::optional<std::string> WhatWentOn(const std::vector<Slice>& slices, const Warm& before) {
  std::vector<double> bursts;
  for (const Slice& slice : slices) bursts.push_back(std::log(slice.burst));
  if (const Known burst = bursts.size() > 1 ? MeanOf(bursts) : Known{};
      burst.mean - kSureOfBurst * burst.half_width > std::log(kNoBurst)) {
    return fmt::format(
        "is {} faster at the beginning of its slices than at their end: it goes on working while it is stopped",
        FormatPercent(std::exp(burst.mean) - 1));
  }
  if (const double waited = Mean(slices, &Slice::waited);
      waited < before.waited - kWaitsNoLess - WaitedByChance(slices)) {
    return fmt::format(
        "waits for data {} of its slices and {} of the time before: what it waits for goes on while it is stopped",
        FormatPercent(waited), FormatPercent(before.waited));
  }
  const double steps = Mean(slices, &Slice::steps);
  if (steps <= kNotFaster * before.most_steps) return std::nullopt;
  return fmt::format(
      "is {} faster in slices than it was before: something of it goes on working while it is stopped",
      FormatPercent(steps / before.most_steps - 1));
}

// Pairs that begin for c seconds and have slices for T tell, in any time, a mean of the variance
// (b^2 + w / T) (c + T) / time: b between starts, and w / T, the square of the error, within a pair. It is least where
// T^2 = w c / b^2.
bool AnotherTellsMore(double error, double seconds, double begin_seconds) {
  return error * std::sqrt(begin_seconds) <= diagnose::kBetweenStarts * std::sqrt(seconds);
}

double ShareOfPair(double left_seconds, size_t pairs_before) {
  return left_seconds / std::max(kLastPair, kUsefulPairs - static_cast<double>(pairs_before));
}

namespace {

// What one program takes for a unit of its work, in seconds.
struct UnitTime {
  double running = 0, paused = 0;
  double work = 0;  // of all its slices
  double whole() const { return running + paused; }
};
UnitTime UnitTimeOf(const std::vector<Slice>& slices, double Slice::*rate) {
  UnitTime time;
  for (const Slice& slice : slices) {
    time.work += slice.*rate * slice.seconds;
    time.paused += slice.paused * slice.seconds;
    time.running += (1 - slice.paused) * slice.seconds;
  }
  time.paused /= time.work;
  time.running /= time.work;
  return time;
}

// How much longer it paused in each slice than it usually does, in seconds.
std::vector<double> LongerPauses(const std::vector<Slice>& slices, double Slice::*rate,
                                 const UnitTime& time) {
  std::vector<double> more;
  for (const Slice& slice : slices)
    more.push_back(slice.paused * slice.seconds - time.paused * slice.*rate * slice.seconds);
  return more;
}

// What came in a few slices only, and may as well have come in one more, or in one fewer, in seconds.
double ByChance(const std::vector<Slice>& slices, double largest) {
  const auto had = std::ranges::count_if(
      slices, [&](const Slice& slice) { return slice.paused * slice.seconds > largest / 2; });
  return static_cast<size_t>(had) < kEnoughToKnow ? largest : 0;
}

// Of the logarithm of the ratio, as far as the pauses of both are not known.
double HalfWidthOfPauses(const std::vector<Slice>& before, const std::vector<Slice>& after,
                         double Slice::*rate, const UnitTime& time_before, const UnitTime& time_after) {
  const size_t count = std::min(before.size(), after.size());
  if (count < 2) return 0;
  const auto more_before = LongerPauses(before, rate, time_before),
             more_after = LongerPauses(after, rate, time_after);
  const double all_before = time_before.work * time_before.whole(),
               all_after = time_after.work * time_after.whole();
  std::vector<double> differences;  // what disturbs both at a time is in none of them
  for (size_t i = 0; i < count; ++i)
    differences.push_back(static_cast<double>(count) *
                          (more_before[i] / all_before - more_after[i] / all_after));
  const double largest = std::max(std::ranges::max(more_before), std::ranges::max(more_after));
  return std::hypot(MeanOf(differences).half_width, kNormal95 * ByChance(before, largest) / all_before,
                    kNormal95 * ByChance(after, largest) / all_after);
}

}  // namespace

RatesInTurns RatesOf(const std::vector<Slice>& before, const std::vector<Slice>& after) {
  RatesInTurns rates;
  for (const auto* slices : {&before, &after}) {
    for (const Slice& slice : *slices) rates.counts_samples = rates.counts_samples && slice.samples > 0;
  }
  const auto rate = rates.counts_samples ? &Slice::samples : &Slice::steps;
  const size_t count = std::min(before.size(), after.size());
  const auto running_rate = [&](const Slice& slice) {
    return slice.*rate / std::max(kLeastRunning, 1 - slice.paused);
  };
  std::vector<double> of_all, of_undisturbed;
  double slowness = 0;
  for (size_t i = 0; i < count; ++i) {
    of_all.push_back(std::log(running_rate(after[i]) / running_rate(before[i])));
    of_undisturbed.push_back(of_all.back() + std::log(after[i].undisturbed / before[i].undisturbed));
    slowness += std::log(after[i].undisturbed * before[i].undisturbed) / 2 / static_cast<double>(count);
  }
  const Ratio ratio = RatioOf(of_all, of_undisturbed, slowness);
  UnitTime time_before = UnitTimeOf(before, rate), time_after = UnitTimeOf(after, rate);
  // What only some slices met is shared by both.
  const double middle = std::sqrt(time_before.running * time_after.running);
  time_before.running = middle * std::exp(ratio.log / 2);
  time_after.running = middle * std::exp(-ratio.log / 2);
  const double of_running =
      (time_before.running / time_before.whole() + time_after.running / time_after.whole()) / 2;
  const double half_width = std::hypot(of_running * ratio.half_width,
                                       HalfWidthOfPauses(before, after, rate, time_before, time_after)) /
                            std::numbers::sqrt2;
  const auto known = [&](const UnitTime& time) {
    const double value = 1 / time.whole();
    return Rate{value, value * (1 - half_width), value * (1 + half_width)};
  };
  rates.before = known(time_before);
  rates.after = known(time_after);
  return rates;
}

}  // namespace fullbore::tune
