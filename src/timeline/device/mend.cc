#include "timeline/device/mend.h"

#include <algorithm>
#include <cstdlib>
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

// Clocks that were aligned by the recorder differ by less: 3 us were seen (kineto#1380).
constexpr int64_t kClocksAgreeNs = 50'000;
// What a launch takes at least until its operation begins, 4 to 30 us in the traces that the tests read.
constexpr int64_t kLeastDelayNs = 5'000;
// So many operations, and one in so many, must say so: one alone may have a wrong time.
constexpr size_t kMinEarly = 3;
constexpr size_t kOneIn = 200;

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

// How the recorded times of one device contradict the host's.
class ClockCheck {
 public:
  ClockCheck(const DeviceTrace& trace, const std::vector<uint32_t>& by_launch,
             const std::vector<uint16_t>& device_of, uint16_t device)
      : trace_(trace) {
    size_t launched = 0;
    for (const uint32_t i : by_launch) {
      const DeviceOp& op = trace.ops[i];
      if (device_of[op.stream] != device) continue;
      ++launched;
      const int64_t delay_ns = op.begin_ns - op.launch_begin_ns;
      least_delay_ns_ = std::min(least_delay_ns_, delay_ns);
      if (delay_ns < -kClocksAgreeNs) early_ns_.push_back(delay_ns);
    }
    if (early_ns_.size() < std::max(kMinEarly, launched / kOneIn)) early_ns_.clear();
  }

  // How long each wait for the whole device lasted beyond what had been launched before it.
  void LookAtWaits(const std::vector<uint32_t>& by_launch) {
    size_t next = 0;
    int64_t end_ns = INT64_MIN;
    for (const HostCall& call : trace_.calls) {
      if (!WaitsForDevice(trace_, call)) continue;
      for (; next < by_launch.size() && trace_.ops[by_launch[next]].launch_begin_ns < call.begin_ns; ++next)
        end_ns = std::max(end_ns, trace_.ops[by_launch[next]].end_ns);
      if (end_ns != INT64_MIN) beyond_ns_.push_back(call.end_ns - end_ns);
    }
    std::sort(beyond_ns_.begin(), beyond_ns_.end());
  }

  struct Offset {
    int64_t ahead_ns = 0;
    bool sure = false;
  };
  Offset Find() {
    const bool waits_seen = beyond_ns_.size() >= kMinEarly;
    const int64_t most_ns =
        waits_seen ? beyond_ns_[beyond_ns_.size() / 4] : INT64_MAX;  // that they can be moved
    if (!early_ns_.empty()) {
      std::sort(early_ns_.begin(), early_ns_.end());
      const int64_t least_ns = -early_ns_[early_ns_.size() / 20];
      return {std::min(least_ns + kLeastDelayNs, std::max(least_ns, most_ns)),
              most_ns >= least_ns - kClocksAgreeNs && AgreeOn(early_ns_, -least_ns)};
    }
    // Only a wait that the device kept until its end shows the whole offset; the others ended later than they had to.
    if (!waits_seen || beyond_ns_[kMinEarly - 1] >= -kClocksAgreeNs) return {};
    const int64_t whole_ns = beyond_ns_[kMinEarly - 1];
    return {whole_ns, least_delay_ns_ + whole_ns >= -kClocksAgreeNs && AgreeOn(beyond_ns_, whole_ns)};
  }

 private:
  // Whether several contradictions are as large: those of operations that found the device idle, and of waits that the
  // device kept.
  static bool AgreeOn(const std::vector<int64_t>& all_ns, int64_t whole_ns) {
    const int64_t near_ns = std::max(2 * kClocksAgreeNs, -whole_ns / 50);
    return std::count_if(all_ns.begin(), all_ns.end(), [&](int64_t each_ns) {
             return std::llabs(each_ns - whole_ns) <= near_ns;
           }) >= static_cast<std::ptrdiff_t>(kMinEarly);
  }

  const DeviceTrace& trace_;
  std::vector<int64_t> early_ns_;   // delays of the operations that begin before their launches
  std::vector<int64_t> beyond_ns_;  // sorted
  int64_t least_delay_ns_ = INT64_MAX;
};

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

bool AlignDeviceClock(DeviceTrace* trace) {
  if (trace->ids_repeat()) return false;  // then operations may be tied to calls of other processes
  const std::vector<uint16_t> device_of = DevicesOfStreams(*trace);
  const std::vector<uint32_t> by_launch = OrderOfLaunches(*trace);
  if (by_launch.empty()) return false;
  const uint16_t devices = static_cast<uint16_t>(*std::max_element(device_of.begin(), device_of.end()) + 1);
  bool moved = false, all_sure = true;
  for (uint16_t device = 0; device < devices; ++device) {
    ClockCheck check(*trace, by_launch, device_of, device);
    if (devices == 1) check.LookAtWaits(by_launch);  // of several, a wait is for one that is not recorded
    const ClockCheck::Offset offset = check.Find();
    if (offset.ahead_ns == 0) continue;
    record::Noticed& noticed = trace->noticed;
    if (!noticed.clock_ahead_ns || std::llabs(*noticed.clock_ahead_ns) < std::llabs(offset.ahead_ns))
      noticed.clock_ahead_ns = offset.ahead_ns;
    all_sure = all_sure && offset.sure;
    if (!offset.sure) continue;
    for (DeviceOp& op : trace->ops) {
      if (device_of[op.stream] != device) continue;
      op.begin_ns += offset.ahead_ns;
      op.end_ns += offset.ahead_ns;
    }
    moved = true;
  }
  trace->noticed.clock_corrected = moved && all_sure;
  return moved;
}

}  // namespace fullbore::timeline
