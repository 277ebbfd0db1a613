// A run as experiment trackers take it: every few seconds, what each figure of the training and of the machine was on
// average since the last time. Pure; the same recording gives the same samples, live or ended, so that what is sent twice
// is the same twice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record/recording.h"

namespace fullbore::watch {

// Figures of the training, as keys beside those of record/metrics.inc; the label of a share is its name.
inline constexpr char kStepTime[] = "step", kSamplesRate[] = "samples_per_second", kShareOfStep[] = "share";

struct Value {
  record::SeriesKey key;
  double value = 0;  // finite
};

struct Sample {
  int64_t end_ns = 0;   // CLOCK_MONOTONIC, of the stretch that it sums up
  int64_t wall_ns = 0;  // the same by the wall clock
  int64_t step = 0;     // that the first rank had done by then
  std::vector<Value> values;
};

// Every two seconds in the first two minutes of a stage, then every ten: a short run has curves, and a long one does not
// fill a server. Without the stretch that still goes on, and those whose readings may still come (`settle_ns`).
inline constexpr int64_t kSettleNs = 5'000'000'000;
// Of all stages, by time; those that end after `after_ns`.
std::vector<Sample> SamplesOf(const record::Recording& recording, int64_t after_ns,
                              int64_t settle_ns = kSettleNs);

// "fullbore/data_wait", "fullbore/step_s", "logged/train_loss", "system/gpu_power/gpu_0": in letters, digits and "_-./" only.
std::string NameOf(const record::SeriesKey& key);

// Whether it is of the training, rather than of the machine.
bool IsOfTraining(const record::SeriesKey& key);

}  // namespace fullbore::watch
