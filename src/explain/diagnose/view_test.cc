#include "explain/diagnose/view.h"

#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using testing::ATraining;

constexpr int64_t kTenthNs = 100'000'000;

// Of readings once a second, the first a tenth of a second after the steady state began.
std::optional<double> MeanOf(const std::vector<double>& values) {
  record::Recording recording = testing::ARun(ATraining());
  const int64_t begin_ns = View(recording, recording.stages.front()).begin_ns();
  record::Series series{record::KeyOf(Metric::kProcessCpu, {{"role", "trainer"}}), {}};
  int64_t t_ns = begin_ns - 9 * kTenthNs;
  series.readings.push_back({t_ns, 1.0});
  for (const double value : values) series.readings.push_back({t_ns += 10 * kTenthNs, value});
  recording.stages.front().series = {series};
  return View(recording, recording.stages.front()).Mean(Metric::kProcessCpu, {{"role", "trainer"}});
}

TEST(ViewMeanTest, WhatTheStartDidCountsByThePartThatTheSteadyStateHas) {
  EXPECT_DOUBLE_EQ(*MeanOf({0.8}), 0.8) << "there is nothing else";
  EXPECT_DOUBLE_EQ(*MeanOf({0.8, 0.2}), (0.1 * 0.8 + 0.2) / 1.1);
  EXPECT_DOUBLE_EQ(*MeanOf({0.8, 0.2, 0.3}), 0.25) << "of three, one can be spared";
}

}  // namespace
}  // namespace fullbore::diagnose
