#include "explain/analyze/rank_fitness.h"

#include <algorithm>

namespace fullbore::analyze {

fitness::Fitness FitnessOf(const RankTrace& rank) {
  const timeline::DeviceTrace& trace = rank.trace();
  fitness::Known known;
  known.noticed = trace.noticed;
  known.device = trace.has_device_activity();
  known.events = trace.events;
  known.operations = static_cast<int64_t>(trace.ops.size());
  known.kernels = std::count_if(trace.ops.begin(), trace.ops.end(),
                                [](const timeline::DeviceOp& op) { return op.kernel; });
  known.shapes = !trace.operators.calls.empty();
  timeline::NoticeSteps(trace, rank.steps(), &known.noticed);
  known.steps = static_cast<int64_t>(rank.steps().steps.size());
  for (const timeline::StepBounds& step : rank.steps().steps) known.wall_ns += step.end_ns - step.begin_ns;
  return fitness::FitnessOf(known);
}

}  // namespace fullbore::analyze
