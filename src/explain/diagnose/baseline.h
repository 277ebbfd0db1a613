// Several recordings of one program as one baseline. What its starts differ by, on their machine, is then seen in them,
// and need not be assumed (between_starts.h): whether another recording is slower is asked of that spread.
//
// Beside the throughput of all steps stands the pace of those that nothing disturbed. What else goes on on a machine slows
// steps down, and never makes one faster; so the fastest fiftieth of the steps varies less from start to start than their
// mean (bench/regressions.py), and shows a change of what every step does. It does not show what only some steps do: that
// is in the throughput.
#pragma once

#include <optional>
#include <vector>

#include "explain/diagnose/compare.h"
#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"

namespace fullbore::diagnose {

inline constexpr size_t kFewestStarts = 3;

// How many times as fast the run would have been, if every step had taken as long as the slowest of the fastest fiftieth:
// times its throughput, in whatever it is counted, that is the pace. Nothing where fewer than two hundred steps are known.
std::optional<double> GainUndisturbed(const record::Recording& recording, const Diagnosis& diagnosis);

// Which quantile of Student's t makes the interval: of how many figures all are to hold in 95 %.
using StudentT = double (*)(size_t degrees_of_freedom);

// How many times as fast new starts are, on average, as others were (Student's t on logarithms, of the spread of both
// groups). Nothing for fewer than kFewestStarts before, or none after.
std::optional<Ratio> RatioOfStarts(const std::vector<double>& before, const std::vector<double>& after,
                                   StudentT student);

// The figures of the starts of a baseline and of what is compared with it.
struct Starts {
  std::vector<double> before, after;
};

// Makes the comparison of one start with another one that of all of them. Where there are both figures, both intervals
// hold in 95 %: who asks two figures whether something is slower is wrong twice as often.
void HoldAgainstStarts(const Starts& throughputs, const Starts& paces, Comparison& comparison);

}  // namespace fullbore::diagnose
