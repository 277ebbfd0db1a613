#include "timeline/device/phases.h"

#include <algorithm>
#include <optional>

namespace fullbore::timeline {

using record::Phase;

namespace {

std::optional<Phase> PhaseOf(SpanKind kind) {
  switch (kind) {
    case SpanKind::kOptimizer:
      return Phase::kOptimizer;
    case SpanKind::kBackward:
      return Phase::kBackward;
    case SpanKind::kValidation:
      return Phase::kValidation;
    default:
      return std::nullopt;
  }
}

}  // namespace

Phases::Phases(const DeviceTrace& trace)
    : main_thread_(trace.main_thread()),
      by_thread_(trace.threads.size() + 1),
      recomputations_(trace.threads.size() + 1) {
  for (const HostSpan& span : trace.spans) {
    const auto phase = PhaseOf(span.kind);
    if (!phase) continue;
    auto& spans = by_thread_[span.thread];
    if (!spans.empty() && span.end_ns <= spans.back().end_ns) continue;  // inside the one before
    spans.push_back({span.begin_ns, span.end_ns, *phase});
  }
  for (const Recomputation& again : trace.recomputations)
    recomputations_[again.thread].push_back({again.begin_ns, again.end_ns, Phase::kRecomputation});
}

const Phases::Stretch* Phases::Covering(const std::vector<Stretch>& stretches, int64_t t_ns) {
  const auto past = std::partition_point(stretches.begin(), stretches.end(),
                                         [t_ns](const Stretch& each) { return each.begin_ns <= t_ns; });
  return past != stretches.begin() && std::prev(past)->end_ns > t_ns ? &*std::prev(past) : nullptr;
}

Phase Phases::At(uint16_t thread, int64_t t_ns) const {
  if (const Stretch* again = Covering(recomputations_[thread], t_ns)) return again->phase;
  if (const Stretch* span = Covering(by_thread_[thread], t_ns)) return span->phase;
  return thread == main_thread_ ? Phase::kForward : Phase::kBackward;
}

}  // namespace fullbore::timeline
