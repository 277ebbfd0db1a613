#include "timeline/device/none.h"

#include <algorithm>

namespace fullbore::timeline {

using record::HostOther;
using record::Share;

namespace {

// As for idle devices (host.cc): longer than Python needs between two operators.
constexpr int64_t kAwayNs = 1'000'000;

struct Phase {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  Share share = Share::kForward;
  HostOther part = HostOther::kUnnamed;
};

bool PhaseOf(const HostSpan& span, Phase* phase) {
  *phase = {span.begin_ns, span.end_ns, Share::kForward, HostOther::kUnnamed};
  switch (span.kind) {
    case SpanKind::kOp:
      return true;
    case SpanKind::kBackward:
      phase->share = Share::kBackward;
      return true;
    case SpanKind::kOptimizer:
      phase->share = Share::kOptimizer;
      return true;
    case SpanKind::kLoader:
      phase->share = Share::kDataWait;
      return true;
    case SpanKind::kCollectiveCall:
      phase->share = Share::kCommExposed;
      return true;
    case SpanKind::kCheckpoint:
    case SpanKind::kValidation:
    case SpanKind::kGarbageCollection:
      phase->share = Share::kHostOther;
      phase->part = span.kind == SpanKind::kCheckpoint   ? HostOther::kCheckpoint
                    : span.kind == SpanKind::kValidation ? HostOther::kValidation
                                                         : HostOther::kGarbageCollection;
      return true;
    default:
      return false;
  }
}

// The phases of the training thread in order, without overlaps (the outermost wins: operators inside the
// loader belong to the loader), and the time between them: short gaps belong to the phase before.
std::vector<Phase> PhasesOf(const DeviceTrace& trace) {
  std::vector<Phase> phases;
  for (const HostSpan& span : trace.spans) {
    Phase phase;
    if (span.thread != trace.main_thread() || !PhaseOf(span, &phase)) continue;
    if (!phases.empty()) phase.begin_ns = std::max(phase.begin_ns, phases.back().end_ns);
    if (phase.begin_ns >= phase.end_ns) continue;
    if (!phases.empty()) {
      const int64_t hole = phase.begin_ns - phases.back().end_ns;
      if (hole >= kAwayNs)
        phases.push_back({phases.back().end_ns, phase.begin_ns, Share::kHostOther, HostOther::kUnnamed});
      else
        phases.back().end_ns = phase.begin_ns;
    }
    phases.push_back(phase);
  }
  return phases;
}

}  // namespace

std::vector<record::Step> StepsOfHost(const DeviceTrace& trace, const std::vector<StepBounds>& bounds) {
  const std::vector<Phase> phases = PhasesOf(trace);
  std::vector<record::Step> steps;
  for (const StepBounds& bound : bounds) {
    record::Step step;
    step.index = static_cast<int64_t>(steps.size());
    step.end_ns = bound.end_ns;
    step.wall_ns = bound.end_ns - bound.begin_ns;
    int64_t rest = step.wall_ns;
    auto it = std::partition_point(phases.begin(), phases.end(),
                                   [&](const Phase& phase) { return phase.end_ns <= bound.begin_ns; });
    for (; it != phases.end() && it->begin_ns < bound.end_ns; ++it) {
      const int64_t ns = std::min(it->end_ns, bound.end_ns) - std::max(it->begin_ns, bound.begin_ns);
      step.share_ns[Index(it->share)] += ns;
      if (it->share == Share::kHostOther) step.host_other_ns[static_cast<size_t>(it->part)] += ns;
      rest -= ns;
    }
    step.share_ns[Index(Share::kHostOther)] += rest;
    step.host_other_ns[static_cast<size_t>(HostOther::kUnnamed)] += rest;
    steps.push_back(step);
  }
  return steps;
}

}  // namespace fullbore::timeline
