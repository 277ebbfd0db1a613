#include "timeline/device/places.h"

#include <algorithm>

namespace fullbore::timeline {

Places::Places(const DeviceTrace& trace) : trace_(trace), by_thread_(trace.threads.size() + 1) {
  for (uint32_t i = 0; i < trace.spans.size(); ++i) {
    const SpanKind kind = trace.spans[i].kind;
    if (kind == SpanKind::kAnnotation || kind == SpanKind::kOptimizer) continue;
    by_thread_[trace.spans[i].thread].push_back(i);
  }
}

std::string Places::Of(const HostCall& call) const {
  constexpr int kDepth = 256;  // deeper stacks are not walked to their end
  const auto& spans = by_thread_[call.thread];
  auto it = std::partition_point(spans.begin(), spans.end(),
                                 [&](uint32_t i) { return trace_.spans[i].begin_ns <= call.begin_ns; });
  NameId op = 0;
  NameId function = 0;
  for (int depth = 0; depth < kDepth && it != spans.begin() && function == 0; ++depth) {
    const HostSpan& span = trace_.spans[*--it];
    if (span.end_ns < call.end_ns) continue;
    if (span.kind == SpanKind::kPython)
      function = span.name;
    else
      op = span.name;
  }
  std::string place(trace_.names[op]);
  if (function != 0) place += (place.empty() ? "" : ", ") + std::string(trace_.names[function]);
  return place;
}

}  // namespace fullbore::timeline
