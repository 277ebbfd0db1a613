#include "timeline/device/operator_count.h"

#include <algorithm>

namespace fullbore::timeline {

OperatorCount::OperatorCount(const DeviceTrace& trace) : outermost_(trace.threads.size() + 1) {
  for (const HostSpan& span : trace.spans) {
    std::vector<const HostSpan*>& of_thread = outermost_[span.thread];
    const bool is_operator = span.kind == SpanKind::kOp || span.kind == SpanKind::kBackward;
    if (is_operator && (of_thread.empty() || of_thread.back()->end_ns <= span.begin_ns))
      of_thread.push_back(&span);
  }
}

float OperatorCount::In(uint16_t thread, int64_t begin_ns, int64_t end_ns) const {
  const std::vector<const HostSpan*>& spans = outermost_[thread];
  double count = 0;
  for (auto span = std::partition_point(spans.begin(), spans.end(),
                                        [=](const HostSpan* s) { return s->end_ns <= begin_ns; });
       span != spans.end() && (*span)->begin_ns < end_ns; ++span) {
    const int64_t within_ns = std::min((*span)->end_ns, end_ns) - std::max((*span)->begin_ns, begin_ns);
    const int64_t lasts_ns = std::max<int64_t>(1, (*span)->end_ns - (*span)->begin_ns);
    count += (1.0 + (*span)->inner) * static_cast<double>(within_ns) / static_cast<double>(lasts_ns);
  }
  return static_cast<float>(count);
}

}  // namespace fullbore::timeline
