// Series, steps and windows with a given shape and a little noise, for the samples.
#pragma once

#include <functional>
#include <string>

#include "record/recording.h"

namespace fullbore::report::testing {

// Noise that is the same on every machine: a linear congruential generator (Knuth's MMIX constants).
class Noise {
 public:
  explicit Noise(uint64_t seed) : state_(seed) {}
  double Around(double mean, double spread);  // uniform in mean +- spread

 private:
  uint64_t state_;
};

struct Span {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// `shape` gives the value at a time in seconds after the beginning; readings never fall below zero.
record::Series MakeSeries(record::SeriesKey key, Span span, double per_second, double noise,
                          const std::function<double(double)>& shape);

// The nanoseconds of each share of a step of `wall_ns`, from ratios that sum to 1; the last one takes the
// rest.
struct StepShape {
  int64_t wall_ns = 0;
  std::vector<std::pair<record::Share, double>> shares;
  int64_t samples = 0;
  double noise = 0.05;  // of the wall time
};

// Steps from the beginning of the span to its end, and their windows of about a second.
void AddSteps(record::RankInfo& rank, Span span, const std::function<StepShape(int64_t step)>& shape,
              Noise& noise);

}  // namespace fullbore::report::testing
