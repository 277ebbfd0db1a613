#include "timeline/device/mend.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "timeline/device/order.h"

namespace fullbore::timeline {
namespace {

// CUPTI occasionally yields times that are off by hours (pytorch#192021 saw 1e14 ns). No profiler
// writes a trace longer than a day.
constexpr int64_t kMaxTraceNs = int64_t{24} * 3600 * kNsPerSecond;

// A clock that is younger than the trace is long may really have stood at 0 when it began.
constexpr int64_t kYoungClockNs = kNsPerSecond;

class Possible {
 public:
  explicit Possible(const DeviceTrace& trace) {
    if (!trace.ops.empty())
      Measure(trace.ops);
    else if (!trace.calls.empty())
      Measure(trace.calls);
    else
      Measure(trace.spans);
  }
  bool operator()(int64_t begin_ns, int64_t end_ns) const {
    if (!known_) return true;
    if (begin_ns == 0 && (end_ns == 0 || zero_is_far_)) return false;
    return begin_ns >= middle_ns_ - kMaxTraceNs && end_ns <= middle_ns_ + kMaxTraceNs;
  }

 private:
  template <typename T>
  void Measure(const PodVector<T>& events) {  // by begin
    const T* first =
        std::partition_point(events.begin(), events.end(), [](const T& e) { return e.begin_ns <= 0; });
    if (first == events.end()) return;
    known_ = true;
    middle_ns_ = first[(events.end() - first - 1) / 2].begin_ns;
    const int64_t span_ns = std::min(events.back().begin_ns - first->begin_ns, kMaxTraceNs);
    zero_is_far_ = first->begin_ns > std::max(kYoungClockNs, span_ns);
  }

  bool known_ = false;
  bool zero_is_far_ = false;
  int64_t middle_ns_ = 0;
};

template <typename T>
int64_t LeaveOut(PodVector<T>* events, const Possible& possible) {
  T* kept = std::remove_if(events->begin(), events->end(),
                           [&](const T& event) { return !possible(event.begin_ns, event.end_ns); });
  const int64_t count = events->end() - kept;
  events->resize_down(static_cast<size_t>(kept - events->begin()));
  return count;
}

template <typename T>
int64_t LeaveOut(std::vector<T>* events, const Possible& possible) {
  return static_cast<int64_t>(
      std::erase_if(*events, [&](const T& event) { return !possible(event.begin_ns, event.end_ns); }));
}

// Whether the later of two marks is the earlier one again.
bool Repeats(const StepMark& mark, const StepMark& earlier) {
  const int64_t overlap_ns =
      std::min(mark.end_ns, earlier.end_ns) - std::max(mark.begin_ns, earlier.begin_ns);
  const int64_t shorter_ns = std::min(mark.end_ns - mark.begin_ns, earlier.end_ns - earlier.begin_ns);
  return mark.begin_ns < earlier.end_ns && 2 * overlap_ns >= shorter_ns;
}

// The thread that does most, of those with marks for most of the steps.
uint16_t ThreadOfSteps(const DeviceTrace& trace) {
  std::vector<int64_t> marks(trace.threads.size() + 1), weight(trace.threads.size() + 1);
  for (const StepMark& mark : trace.steps) ++marks[mark.thread];
  for (const HostSpan& span : trace.spans) ++weight[span.thread];
  for (const HostCall& call : trace.calls) ++weight[call.thread];
  const int64_t most = *std::max_element(marks.begin(), marks.end());
  size_t best = trace.steps.front().thread;
  for (size_t i = 0; i < marks.size(); ++i) {
    if (2 * marks[i] < most) continue;
    if (2 * marks[best] < most || weight[i] > weight[best]) best = i;
  }
  return static_cast<uint16_t>(best);
}

bool IsOneOfALaunch(const DeviceTrace& trace, const DeviceOp& op) {
  return op.kernel && op.call != kNone && trace.calls[op.call].kind == CallKind::kLaunch;
}

}  // namespace

void LeaveOutImpossibleTimes(DeviceTrace* trace) {
  const Possible possible(*trace);
  const int64_t ops = LeaveOut(&trace->ops, possible);
  const int64_t host = LeaveOut(&trace->calls, possible) + LeaveOut(&trace->spans, possible) +
                       LeaveOut(&trace->steps, possible) + LeaveOut(&trace->collective_calls, possible);
  if (ops > 0)
    trace->left_out["device operations at time 0, or a day or more away from the rest (bad timestamps)"] +=
        ops;
  if (host > 0)
    trace->left_out["host events at time 0, or a day or more away from the rest (bad timestamps)"] += host;
}

void LeaveOutRepeatedMarks(DeviceTrace* trace) {
  if (trace->steps.size() < 2) return;
  const uint16_t thread = ThreadOfSteps(*trace);
  std::vector<StepMark> kept;
  for (const StepMark& mark : trace->steps) {
    if (mark.thread == thread && (kept.empty() || !Repeats(mark, kept.back()))) kept.push_back(mark);
  }
  const auto of_thread = static_cast<std::ptrdiff_t>(kept.size());
  for (const StepMark& mark : trace->steps) {
    if (mark.thread == thread) continue;
    const auto past =
        std::partition_point(kept.begin(), kept.begin() + of_thread,
                             [&](const StepMark& other) { return other.begin_ns < mark.end_ns; });
    if (past != kept.begin() && Repeats(mark, *std::prev(past))) continue;
    if (past != kept.begin() && std::prev(past) != kept.begin() && Repeats(mark, *std::prev(past, 2)))
      continue;
    if (static_cast<size_t>(of_thread) < kept.size() && Repeats(mark, kept.back())) continue;
    kept.push_back(mark);
  }
  const size_t repeated = trace->steps.size() - kept.size();
  if (repeated == 0) return;
  std::stable_sort(kept.begin(), kept.end(),
                   [](const StepMark& a, const StepMark& b) { return a.begin_ns < b.begin_ns; });
  trace->steps = std::move(kept);
  trace->notes.push_back("steps are marked more than once: " + std::to_string(repeated) +
                         " marks lie within others, and each step counts once");
}

// Overlaps of a stream are possible: a kernel may begin before the one that it waits for has ended (programmatic
// dependent launch), and those of a graph run beside each other. But it does not end before that one.
void CutCoveringOperations(DeviceTrace* trace) {
  std::vector<uint32_t> next(trace->streams.size() + 1, kNone);
  std::vector<const HostCall*> waits;
  for (const HostCall& call : trace->calls) {
    if (WaitsForDevice(*trace, call)) waits.push_back(&call);
  }
  for (auto i = static_cast<uint32_t>(trace->ops.size()); i-- > 0;) {
    DeviceOp& op = trace->ops[i];
    if (!IsOneOfALaunch(*trace, op)) continue;
    const uint32_t after = std::exchange(next[op.stream], i);
    if (after == kNone) continue;
    const DeviceOp& successor = trace->ops[after];
    const bool covers = op.end_ns > successor.end_ns && successor.end_ns > successor.begin_ns;
    if (!covers || op.correlation == successor.correlation) continue;
    op.end_ns = successor.begin_ns;
    const auto wait = std::partition_point(
        waits.begin(), waits.end(), [&](const HostCall* call) { return call->begin_ns < op.launch_end_ns; });
    if (wait != waits.end() && (*wait)->end_ns > op.begin_ns)
      op.end_ns = std::min(op.end_ns, (*wait)->end_ns);
    ++trace->noticed.cut;
  }
}

}  // namespace fullbore::timeline
