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
    : main_thread_(trace.main_thread()), by_thread_(trace.threads.size() + 1) {
  for (const HostSpan& span : trace.spans) {
    const auto phase = PhaseOf(span.kind);
    if (!phase) continue;
    auto& spans = by_thread_[span.thread];
    if (!spans.empty() && span.end_ns <= spans.back().end_ns) continue;  // inside the one before
    spans.push_back({span.begin_ns, span.end_ns, *phase});
  }
}

Phase Phases::At(uint16_t thread, int64_t t_ns) const {
  const auto& spans = by_thread_[thread];
  const auto past = std::partition_point(spans.begin(), spans.end(),
                                         [t_ns](const Stretch& span) { return span.begin_ns <= t_ns; });
  if (past != spans.begin() && std::prev(past)->end_ns > t_ns) return std::prev(past)->phase;
  return thread == main_thread_ ? Phase::kForward : Phase::kBackward;
}

}  // namespace fullbore::timeline
