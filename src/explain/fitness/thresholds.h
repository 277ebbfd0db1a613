// From when on something limits what may be concluded, each with where it comes from.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace fullbore::fitness {

// Launches that ran nothing. Recordings of real devices begin and end in the middle of launches: up to 2 % of those in
// real traces have no operation. A twentieth is more than any edge explains; where a third of them ran nothing, what was
// recorded is not the program (one launch of a graph stands for hundreds of kernels).
inline constexpr double kSomeRanNothing = 0.05;
inline constexpr double kMostRanNothing = 0.33;
inline constexpr int64_t kFewestLaunches = 20;  // fewer are an edge themselves
// Of the device's span: the time in which such launches may have kept it busy. A finding begins at as much.
inline constexpr double kBareCounts = 0.05;

// Operations without a usable time. Each leaves a hole that looks like idle time; below a hundredth of them the holes
// are smaller than the least share that is a finding.
inline constexpr double kSomeLeftOut = 0.01;

// The first launch of a module takes milliseconds, of a warm one microseconds. A cold call is a hundred times as long
// as others of its kind, so this part of the time is start-up; a finding begins at a twentieth.
inline constexpr double kColdCounts = 0.05;
inline constexpr double kMostlyCold = 0.50;

// A step of the smallest network launches dozens of kernels: fewer, unmarked, are not a step.
inline constexpr int64_t kFewestKernels = 20;

// Of a live run. Its first steps start workers, fill caches and search for kernels, which no change-point test tells
// apart in a handful of them. Steps of half a minute each are long enough to be what they seem.
inline constexpr int64_t kFewestSteps = 5;
inline constexpr int64_t kEarlyNs = 30 * kNsPerSecond;

// Coverage is said below this; below a half, most of what the device did is in no step.
inline constexpr double kCovered = 0.90;
inline constexpr double kMostlyCovered = 0.50;
// "At z % of what it could do" counts work that is not known at the time that it took, as if it were at its limit: with
// a fifth of it unknown, z is too high by as much as a finding's share at most.
inline constexpr double kWorkKnown = 0.80;

// A clock that is off by less than a launch takes to arrive changes nothing.
inline constexpr int64_t kClockOffNs = 100'000;

// A profiler costs one to three microseconds a call. Where it makes a step a tenth longer, twice what a finding begins
// at, what the host seems to lose may be its doing.
inline constexpr double kSlowed = 1.10;

// Both a choice. The mean of the steps is known to this ratio or worse: said before anything else...
inline constexpr double kNoisy = 0.05;
// ...and to this: a gain that is not larger is not predicted.
inline constexpr double kTooNoisy = 0.15;

}  // namespace fullbore::fitness
