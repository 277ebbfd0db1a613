#include "tune/proof/proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace fullbore::tune {

namespace {

// Two-sided 99 % quantiles of Student's t by degrees of freedom. Looking after every pair from the second to the eighth
// then errs in less than 5 % of all proofs (Pocock 1977: 98.7 % for seven looks), and claims a gain where there is none
// in less than 1 % (ProofTest.ClaimsHardlyEverAGainThatIsNone).
constexpr std::array kStudent = {63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499};
constexpr double kNormal = 2.576;  // the same with so many degrees of freedom as a trial has steps
// Pairs that agree by chance are not known better than what they are made of, and their spread is none to be believed: of
// two pairs, it is less than half of what it should be in a third of all cases.
constexpr double kLeastSpread = 0.5;

double Square(double value) { return value * value; }

// Of the logarithm of a rate, as the trial itself knows it.
double DeviationOf(const Rate& rate) {
  constexpr double kNormal95 = 1.96;
  return (rate.high - rate.low) / 2 / rate.mean / kNormal95;
}

// The logarithms of the pairs' ratios.
struct Ratios {
  // Of one pair: seen between them, and known of the trials that they are made of.
  double mean = 0, spread = 0, known = 0;

  double Half(size_t count) const {
    const double one =
        std::max(kStudent[count - 2] * std::max(spread, kLeastSpread * known), kNormal * known);
    return one / std::sqrt(static_cast<double>(count));
  }
};

std::optional<Ratios> RatiosOf(const std::vector<Proof::Pair>& pairs) {
  const size_t count = std::min(pairs.size(), kMostPairs);
  if (count < 2) return std::nullopt;
  const auto ratio = [](const Proof::Pair& pair) { return std::log(pair.after.mean / pair.before.mean); };
  double mean = 0, spread = 0, known = 0;
  for (size_t i = 0; i < count; ++i) mean += ratio(pairs[i]) / static_cast<double>(count);
  for (size_t i = 0; i < count; ++i) {
    spread += Square(ratio(pairs[i]) - mean) / static_cast<double>(count - 1);
    known += (Square(DeviationOf(pairs[i].before)) + Square(DeviationOf(pairs[i].after))) /
             static_cast<double>(count);
  }
  return Ratios{mean, std::sqrt(spread), std::sqrt(known)};
}

}  // namespace

std::string_view Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOpen:
      return "open";
    case Verdict::kFaster:
      return "faster";
    case Verdict::kAsFast:
      return "as-fast";
    case Verdict::kNoGain:
      return "no-gain";
    case Verdict::kFailed:
      return "failed";
  }
  return "";
}

std::optional<Proof::Gain> Proof::gain() const {
  const auto ratios = RatiosOf(pairs);
  if (!ratios) return std::nullopt;
  const double mean = ratios->mean, half = ratios->Half(std::min(pairs.size(), kMostPairs));
  return Gain{std::exp(mean), std::exp(mean - half), std::exp(mean + half)};
}

std::optional<size_t> Proof::pairs_to_tell(double from) const {
  const auto ratios = RatiosOf(pairs);
  if (!ratios) return std::nullopt;
  for (size_t count = std::max<size_t>(2, pairs.size()); count <= kMostPairs; ++count) {
    if (ratios->Half(count) < std::abs(ratios->mean - std::log(from))) return count;
  }
  return std::nullopt;
}

bool IsTold(const Proof::Gain& gain, const std::vector<double>& from) {
  return std::ranges::all_of(from, [&](double each) { return gain.low > each || gain.high < each; });
}

nlohmann::ordered_json ToJson(const Proof::Gain& gain) {
  return {{"expected", gain.expected}, {"low", gain.low}, {"high", gain.high}};
}

std::string GainText(const Proof::Gain& gain, std::string_view level) {
  constexpr double kTellsNothing = 10;
  if (gain.high > kTellsNothing * gain.expected)
    return fmt::format("{:.2f}x (the pairs differ too much to tell)", gain.expected);
  return fmt::format("{:.2f}x ({:.2f} to {:.2f}{})", gain.expected, gain.low, gain.high, level);
}

std::string_view Name(Side side) { return side == Side::kBaseline ? "baseline" : "candidate"; }

std::string PairsText(const Proof& proof) {
  const size_t pairs = proof.pairs.size(), in_slices = proof.pairs_in_slices();
  const std::string text =
      (pairs == 1 ? std::string("one pair") : fmt::format("{} pairs", pairs)) + " of trials";
  if (pairs == 0) return text;
  if (in_slices == 0 || in_slices == pairs)
    return fmt::format("{}, {} in turns", text, in_slices == 0 ? "whole runs" : "slices of both");
  return fmt::format("{}, {} of them slices of both in turns, the others whole runs", text, in_slices);
}

size_t Proof::pairs_in_slices() const {
  return static_cast<size_t>(std::ranges::count(pairs, true, &Pair::in_slices));
}

void Proof::Add(Pair pair) {
  pairs.push_back(pair);
  const auto now = gain();
  if (!now) return;
  if (now->low > 1)
    verdict = Verdict::kFaster;
  else if (asks_for_less && now->low > 1 - within)
    verdict = Verdict::kAsFast;
  else if (now->high < (asks_for_less ? 1 - within : kMatters))
    verdict = Verdict::kNoGain;
}

std::optional<PairOfTrials> MakePair(size_t earlier,
                                     const std::function<std::optional<Trial>(bool as_it_is)>& make) {
  const bool as_it_is_first = earlier % 2 == 0;
  auto first = make(as_it_is_first);
  if (!first) return std::nullopt;
  auto second = make(!as_it_is_first);
  if (!second) return std::nullopt;
  if (!as_it_is_first) std::swap(first, second);
  return PairOfTrials{std::move(*first), std::move(*second)};
}

}  // namespace fullbore::tune
