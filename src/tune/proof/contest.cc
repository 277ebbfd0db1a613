#include "tune/proof/contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace fullbore::tune {

namespace {

// Two tell which one is faster, but hardly by how much: 1.6x, "1.0 to 2.6".
constexpr size_t kFewestPairs = 3;

std::optional<Ending> EndingAfter(const Proof& proof, const std::vector<double>& thresholds) {
  const auto gain = proof.gain();
  if (!gain || proof.pairs.size() < kFewestPairs) return std::nullopt;
  if (IsTold(*gain, thresholds)) return Ending::kDecided;
  // Which of them is faster does not matter then; what else was asked for does.
  std::vector<double> others = thresholds;
  std::erase(others, 1.0);
  if (gain->low > 1 / kMatters && gain->high < kMatters && IsTold(*gain, others))
    return Ending::kNoDifference;
  if (proof.pairs.size() >= kMostPairs) return Ending::kTooNoisy;
  return std::nullopt;
}

// One that cannot be measured ends the contest.
std::optional<Trial> TryOne(Side side, Track& track, Contest& contest) {
  const auto made = track.Try(side);
  if (!made) return std::nullopt;
  contest.trials.push_back(*made);
  const Trial& trial = made->trial;
  if (trial.ok() && contest.proof.pairs.empty()) contest.unit = trial.unit;
  if (trial.ok()) return trial;
  contest.ending = Ending::kFailed;
  contest.why = fmt::format("the {} could not be measured: {}{}", Name(made->side), Name(trial.outcome),
                            trial.why.empty() ? "" : ", " + trial.why);
  return std::nullopt;
}

bool CountInSteps(Trial& trial) {
  if (trial.unit == kStepsPerSecond) return true;
  if (!trial.steps_rate) return false;
  trial.rate = trial.steps_rate;
  trial.unit = kStepsPerSecond;
  return true;
}

// Where the samples of only one of them are known, both have steps; whether they can be counted alike.
bool CountAlike(PairOfTrials& pair) {
  return pair.before.unit == pair.after.unit || (CountInSteps(pair.before) && CountInSteps(pair.after));
}

// So many pairs in all that are like these would tell all; nothing where kMostPairs would not.
std::optional<size_t> PairsWanted(const Contest& contest) {
  size_t most = 0;
  for (const double threshold : contest.thresholds) {
    const auto wanted = contest.proof.pairs_to_tell(threshold);
    if (!wanted) return std::nullopt;
    most = std::max(most, *wanted);
  }
  return most;
}

// Half of what one pair differs from another, as a ratio.
double SpreadOf(const Proof& proof) {
  double least = 0, most = 0;
  for (const Proof::Pair& pair : proof.pairs) {
    const double ratio = std::log(pair.after.mean / pair.before.mean);
    least = &pair == &proof.pairs.front() ? ratio : std::min(least, ratio);
    most = &pair == &proof.pairs.front() ? ratio : std::max(most, ratio);
  }
  return (most - least) / 2;
}

}  // namespace

std::string_view Name(Ending ending) {
  switch (ending) {
    case Ending::kDecided:
      return "decided";
    case Ending::kNoDifference:
      return "no-difference";
    case Ending::kTooNoisy:
      return "too-noisy";
    case Ending::kOver:
      return "over";
    case Ending::kFailed:
      return "failed";
  }
  return "";
}

std::string_view Name(Standing standing) {
  switch (standing) {
    case Standing::kNotProven:
      return "not-proven";
    case Standing::kFaster:
      return "faster";
    case Standing::kSlower:
      return "slower";
  }
  return "";
}

Standing StandingOf(const std::optional<Proof::Gain>& gain) {
  if (gain && gain->low > 1) return Standing::kFaster;
  if (gain && gain->high < 1) return Standing::kSlower;
  return Standing::kNotProven;
}

std::vector<Trial> Contest::TrialsOf(Side side) const {
  std::vector<Trial> found;
  for (const Made& made : trials) {
    if (made.side == side) found.push_back(made.trial);
  }
  return found;
}

double Contest::last_pair_s() const {
  const size_t count = 2 * proof.pairs.size();
  return count == 0 ? 0 : trials[count - 2].trial.seconds + trials[count - 1].trial.seconds;
}

std::optional<LossDifference> Contest::losses() const {
  return CompareLosses(TrialsOf(Side::kBaseline), TrialsOf(Side::kCandidate), "the candidate");
}

Contest Compete(const std::vector<double>& thresholds, Track& track) {
  Contest contest;
  contest.thresholds = thresholds;
  const auto make = [&](bool as_it_is) {
    return TryOne(as_it_is ? Side::kBaseline : Side::kCandidate, track, contest);
  };
  while (contest.last_pair_s() < track.left_s()) {
    auto pair = MakePair(contest.proof.pairs.size(), make);
    if (!pair) return contest;
    if (!CountAlike(*pair)) {
      contest.ending = Ending::kFailed;
      contest.why = fmt::format("the baseline is counted in {}, the candidate in {}", pair->before.unit,
                                pair->after.unit);
      return contest;
    }
    contest.unit = pair->before.unit;
    contest.proof.Add({*pair->before.rate, *pair->after.rate, pair->before.in_slices});
    track.OnPair(contest.proof);
    if (const auto ending = EndingAfter(contest.proof, thresholds)) {
      contest.ending = *ending;
      return contest;
    }
  }
  return contest;
}

double LongestWholeRun(double left_seconds, size_t trials_before) {
  constexpr size_t kFewestTrials = 4;
  constexpr double kOfItsTime = 0.5;  // the rest is for what comes before its first step
  const size_t of_two_pairs = kFewestTrials - std::min(trials_before, kFewestTrials);
  const size_t of_its_pair = 2 - trials_before % 2;
  const size_t wanted = std::max(of_two_pairs, of_its_pair);
  return kOfItsTime * left_seconds / static_cast<double>(wanted);
}

std::string WhatWouldSettle(const Contest& contest) {
  const size_t pairs = contest.proof.pairs.size();
  switch (contest.ending) {
    case Ending::kDecided:
    case Ending::kFailed:
      return "";
    case Ending::kNoDifference:
      return fmt::format("Neither is faster by {} or more: more trials would not change that.",
                         FormatPercent(kMatters - 1));
    case Ending::kTooNoisy:
      return fmt::format(
          "The pairs differ by ±{}. Fewer other programs on this machine would settle it, or longer trials: "
          "{}--precision 1% --most 5m.",
          FormatPercent(SpreadOf(contest.proof)), contest.proof.pairs_in_slices() > 0 ? "--whole-runs " : "");
    case Ending::kOver:
      break;
  }
  if (pairs >= 2 && IsTold(*contest.proof.gain(), contest.thresholds)) return "";
  if (pairs < 2) return "At least two pairs of trials are needed: give a longer --budget.";
  const auto wanted = PairsWanted(contest);
  if (!wanted || *wanted <= pairs)
    return fmt::format(
        "The pairs differ by ±{}: more time (--budget) and fewer other programs beside it would settle it.",
        FormatPercent(SpreadOf(contest.proof)));
  double seconds = contest.last_pair_s() * static_cast<double>(*wanted - pairs);
  for (const Made& made : contest.trials) seconds += made.trial.seconds;
  return fmt::format("{} pairs like these would settle it: --budget {:.0f}m.", *wanted,
                     std::ceil(seconds / 60));
}

}  // namespace fullbore::tune
