// Two commands against each other: pairs of trials (proof.h), one of each, until it is told which of them is faster,
// that neither is, or that the time that there is will not tell. It runs no process: trials come through a Track.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tune/proof/proof.h"
#include "tune/trial/losses.h"
#include "tune/trial/trial.h"

namespace fullbore::tune {

// Why there are no more pairs.
enum class Ending : uint8_t {
  kDecided,       // the interval lies on one side of all that it was to be told from
  kNoDifference,  // it is narrower than what matters, around 1
  kTooNoisy,      // after kMostPairs: the trials differ too much from each other
  kOver,          // no time is left, or the user has had enough
  kFailed,        // a command could not be measured, or the two in no unit that both have
};
std::string_view Name(Ending ending);  // "decided", "no-difference", "too-noisy", "over", "failed"

// Which of the two is faster, by an interval of how many times as fast the candidate is.
enum class Standing : uint8_t { kNotProven, kFaster, kSlower };
std::string_view Name(Standing standing);  // "not-proven", "faster", "slower"
Standing StandingOf(const std::optional<Proof::Gain>& gain);

// Makes the trials of one contest.
class Track {
 public:
  virtual ~Track() = default;
  // Nothing where it was over before the trial could be measured. Of the other side only where that one cannot be
  // measured at all.
  virtual std::optional<Made> Try(Side side) = 0;
  virtual double left_s() const = 0;
  virtual void OnPair(const Proof& so_far) { (void)so_far; }
};

struct Contest {
  std::vector<double> thresholds;
  std::vector<Made> trials;  // in the order in which they were made
  Proof proof;               // of the whole pairs among them
  Ending ending = Ending::kOver;
  std::string why;   // of kFailed
  std::string unit;  // of the rates in the proof; empty where no trial has a rate

  Standing standing() const { return StandingOf(proof.gain()); }
  std::vector<Trial> TrialsOf(Side side) const;
  double last_pair_s() const;  // 0: there was none
  // Losses of the first steps, the candidate's beside the baseline's; nothing where not both are known.
  std::optional<LossDifference> losses() const;
};

// `thresholds`: how many times as fast it matters to know the candidate to be, or not; 1 tells faster from slower.
Contest Compete(const std::vector<double>& thresholds, Track& track);

// How long a whole run may be measured, where so much time is left after so many of them: fewer than two pairs tell
// nothing, and each of them takes its time to begin.
double LongestWholeRun(double left_seconds, size_t trials_before);

// What would tell what this one leaves open, in a sentence; empty where nothing is open.
std::string WhatWouldSettle(const Contest& contest);

}  // namespace fullbore::tune
