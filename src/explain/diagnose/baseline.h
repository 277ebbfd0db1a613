// Several recordings of one program as one baseline. What its starts differ by, on their machine, is then seen in them,
// and need not be assumed (between_starts.h): whether another recording is slower is asked of that spread.
//
// Beside the throughput of all steps stands the pace of those that nothing disturbed. What else goes on on a machine slows
// steps down, and never makes one faster; so the fastest tenth of the steps varies less from start to start than their mean
// (bench/regressions.py), and shows a change of what every step does. It does not show what comes in fewer steps than nine
// in ten: that is in the throughput.
#pragma once

#include <optional>
#include <vector>

#include "explain/diagnose/compare.h"
#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"

namespace fullbore::diagnose {

inline constexpr size_t kFewestStarts = 3;

// Samples (or, where they are not known, steps) per second, if every step took as long as the slowest of the fastest tenth.
// Nothing where fewer than a hundred steps are known.
std::optional<double> UndisturbedPace(const record::Recording& recording, const Diagnosis& diagnosis);

// Which quantile of Student's t makes the interval: of how many figures all are to hold in 95 %.
using StudentT = double (*)(size_t degrees_of_freedom);

// A new start's ratio to the mean of others, from its ratio to each of them (on logarithms). Nothing for fewer than
// kFewestStarts.
std::optional<Ratio> RatioToStarts(const std::vector<double>& ratios, StudentT student);

// Makes the comparison with one of the starts one with all of them: `throughputs` and `paces` are the ratios to each.
// Where there are both, both intervals hold in 95 %: who asks two figures whether something is slower is wrong twice as
// often.
void HoldAgainstStarts(const std::vector<double>& throughputs, const std::vector<double>& paces,
                       Comparison& comparison);

}  // namespace fullbore::diagnose
