// `compare --fail-if`: what makes the exit status say that the second is not as it should be.
//
//   slower          it is slower: its interval lies below 1
//   slower 3%       it is slower by more than that, with its whole interval
//   not-faster      it is not proven to be faster: its interval does not lie above 1
//   not-faster 10%  it is not proven to be faster by more than that
//   not-proven      the interval does not tell what the other conditions ask or, without others, which is faster
//
// And by the name of what is looked at, in shells in quotes:
//
//   samples_per_s < -3%   it was measured to be slower by more than that, and its interval lies below 1: it is no noise
//   data_wait > +3pt      this share of the step's time has grown by more than three points, with its whole interval;
//                         with < -3pt, has shrunk. Only of recordings: trials of commands measure speed alone
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "explain/diagnose/share_noise.h"
#include "tune/proof/proof.h"

namespace fullbore::tune {

struct FailIf {
  enum class Kind : uint8_t { kSlower, kBelow, kNotFaster, kNotProven, kShareGrew, kShareShrank };
  Kind kind = Kind::kSlower;
  double threshold =
      1;  // times as fast; 0.97 for "slower 3%". Of a share, the change as a ratio of the step: 0.03
  std::string share;  // its name, "data_wait"
  std::string text;   // as it was given

  bool IsOfShare() const { return kind == Kind::kShareGrew || kind == Kind::kShareShrank; }
};

// What the conditions are held against; what is not known is absent.
struct MeasuredChange {
  std::optional<Proof::Gain> gain;
  diagnose::ShareMoves shares;
  // Of recordings against several starts: of the steps that nothing disturbed. What is slower in either is slower.
  std::optional<Proof::Gain> undisturbed;
};

// "slower 3%" or "slower:3%", which needs no quotes in a shell. An error for anything else names all that there are.
Result<std::vector<FailIf>> ParseFailIf(const std::vector<std::string>& texts);

// Whether what the condition asks was measured at all.
bool IsKnown(const FailIf& condition, const MeasuredChange& measured);

// How many times as fast it matters to know the second to be.
std::vector<double> ThresholdsOf(const std::vector<FailIf>& conditions);

// The texts of those that hold; without an interval, those that want proof.
std::vector<std::string> WhatHolds(const std::vector<FailIf>& conditions, const MeasuredChange& measured);

}  // namespace fullbore::tune
