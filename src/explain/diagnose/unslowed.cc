#include "explain/diagnose/unslowed.h"

#include <algorithm>
#include <array>
#include <vector>

#include "explain/replay/observer.h"

namespace fullbore::diagnose {

namespace {

using record::Share;

// Where the device stands idle for the host's sake, what the profiler makes longest first.
constexpr std::array kOfTheHost = {Share::kLaunch, Share::kSync, Share::kGap};

double MedianWall(const std::vector<record::Step>& steps) {
  std::vector<int64_t> walls;
  for (const record::Step& step : steps) walls.push_back(step.wall_ns);
  const auto middle = walls.begin() + static_cast<std::ptrdiff_t>(walls.size() / 2);
  std::ranges::nth_element(walls, middle);
  return static_cast<double>(*middle);
}

template <typename Steps>  // a step, or some together
void TakeFrom(Steps& steps, int64_t wall_ns, double part) {
  auto excess_ns = static_cast<int64_t>(static_cast<double>(wall_ns) * part);
  for (const Share share : kOfTheHost) {
    int64_t& ns = steps.share_ns[Index(share)];
    const int64_t taken = std::min(ns, excess_ns);
    ns -= taken;
    excess_ns -= taken;
    if constexpr (requires { steps.wall_ns; }) steps.wall_ns -= taken;
  }
}

void TakeFromSteps(record::RankInfo& rank, double step_ns) {
  const double recorded_ns = MedianWall(rank.steps);
  if (recorded_ns <= step_ns) return;
  const double part = 1 - step_ns / recorded_ns;
  rank.noticed.slowed = recorded_ns / step_ns;
  for (record::Step& step : rank.steps) TakeFrom(step, step.wall_ns, part);
  for (record::StepWindow& window : rank.windows) {
    int64_t wall_ns = 0;
    for (const int64_t ns : window.share_ns) wall_ns += ns;
    TakeFrom(window, wall_ns, part);
  }
}

}  // namespace

record::Recording Unslowed(record::Recording trace, double step_ns) {
  if (step_ns <= 0) return trace;
  for (record::Stage& stage : trace.stages) {
    for (record::RankInfo& rank : stage.ranks) {
      if (!rank.device_activity || rank.steps.empty()) continue;
      if (rank.graph) rank.graph = replay::UnwatchedTo(*rank.graph, step_ns);
      TakeFromSteps(rank, step_ns);
    }
  }
  return trace;
}

}  // namespace fullbore::diagnose
