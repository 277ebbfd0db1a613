#include "explain/roofline/host_operators.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "explain/roofline/work.h"

namespace fullbore::roofline {

namespace {

using timeline::DeviceTrace;
using timeline::HostSpan;
using timeline::OperatorCall;
using timeline::SpanKind;

constexpr size_t kMaxOperators = 256;  // the rest together is noise

// The arithmetic of calls on one thread. Of calls within one another only the innermost counts, for it is the one that
// computes. `calls` are sorted by begin, the outer ones first.
std::vector<std::pair<int64_t, double>> WorkByBegin(const DeviceTrace& trace, uint16_t thread) {
  struct Open {
    int64_t end_ns;
    size_t at;
  };
  std::vector<std::pair<int64_t, double>> work;
  std::vector<Open> open;
  for (const OperatorCall& call : trace.operators.calls) {
    if (call.thread != thread) continue;
    while (!open.empty() && open.back().end_ns <= call.begin_ns) open.pop_back();
    const timeline::OperatorShape& shape = trace.operators.shapes[call.shape];
    const Work known = WorkOf(shape, trace.names[shape.name], {});
    if (known.flops.value_or(0) <= 0) continue;
    for (const Open& outer : open) work[outer.at].second = 0;
    open.push_back({call.end_ns(), work.size()});
    work.emplace_back(call.begin_ns, *known.flops);
  }
  return work;
}

double WorkWithin(const std::vector<std::pair<int64_t, double>>& work, const HostSpan& span) {
  double flops = 0;
  auto at = std::ranges::lower_bound(work, span.begin_ns, {}, &std::pair<int64_t, double>::first);
  for (; at != work.end() && at->first < span.end_ns; ++at) flops += at->second;
  return flops;
}

}  // namespace

bool IsInside(const std::vector<timeline::StepBounds>& steps, int64_t at_ns) {
  const auto after = std::ranges::upper_bound(steps, at_ns, {}, &timeline::StepBounds::begin_ns);
  return after != steps.begin() && at_ns < std::prev(after)->end_ns;
}

// "autograd::engine::evaluate_function: AddmmBackward0" is what the backward pass calls "AddmmBackward0".
std::string_view ShortName(std::string_view name) {
  constexpr std::string_view kEngine = "autograd::engine::evaluate_function: ";
  return name.starts_with(kEngine) ? name.substr(kEngine.size()) : name;
}

std::vector<record::OperatorTime> HostOperators(const DeviceTrace& trace,
                                                const std::vector<timeline::StepBounds>& steps) {
  std::map<std::string_view, record::OperatorTime> sums;
  std::map<uint16_t, std::vector<std::pair<int64_t, double>>> work;  // by thread
  for (const HostSpan& span : trace.spans) {
    if ((span.kind != SpanKind::kOp && span.kind != SpanKind::kBackward) || !IsInside(steps, span.begin_ns))
      continue;
    const std::string_view name = ShortName(trace.names[span.name]);
    record::OperatorTime& sum = sums[name];
    sum.name = name;
    ++sum.count;
    sum.sum_ns += span.end_ns - span.begin_ns;
    if (!work.contains(span.thread)) work[span.thread] = WorkByBegin(trace, span.thread);
    if (const double flops = WorkWithin(work[span.thread], span); flops > 0)
      sum.flops = sum.flops.value_or(0) + flops;
  }
  std::vector<record::OperatorTime> sorted;
  for (auto& [name, sum] : sums) sorted.push_back(std::move(sum));
  std::ranges::stable_sort(sorted, std::greater(), &record::OperatorTime::sum_ns);
  if (sorted.size() > kMaxOperators) sorted.resize(kMaxOperators);
  return sorted;
}

}  // namespace fullbore::roofline
