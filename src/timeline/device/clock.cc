#include "timeline/device/clock.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "timeline/device/order.h"

namespace fullbore::timeline {
namespace {

// Clocks that were aligned by the recorder differ by less: 3 us were seen (kineto#1380).
constexpr int64_t kClocksAgreeNs = 50'000;
// What a launch takes at least until its operation begins, 4 to 30 us in the traces that the tests read.
constexpr int64_t kLeastDelayNs = 5'000;
// So many operations, and one in so many, must say so: one alone may have a wrong time.
constexpr size_t kMinEarly = 3;
constexpr size_t kOneIn = 200;
// A launch reaches an idle device within 30 us; if none of at least five does so within a millisecond, the clock is late.
// The millisecond is a choice: on Windows, whose driver collects launches, some take as long.
constexpr int64_t kHeldNs = 1'000'000;
constexpr size_t kMinHeld = 5;
// Where more calls than one in so many ran nothing, what seems idle may be what was not recorded.
constexpr size_t kBareOneIn = 50;
// `.item()` waits within some microseconds of its copy, which is of one value.
constexpr int64_t kAtOnceNs = 20'000;
constexpr int64_t kOneValueBytes = 16;
// More than a stream's queue holds (CUDA: 1,024): what was launched earlier has ended, or the clock is not the reason.
constexpr size_t kMostLookedAt = 10'000;
// Where a hundred waits ended before only one or two that they held, the times of those are wrong.
constexpr size_t kMostWaits = 100;

// The quantile at `one_in` from the least, of sorted values.
int64_t Low(const std::vector<int64_t>& sorted, size_t one_in) { return sorted[sorted.size() / one_in]; }

// How the recorded times of one device contradict the host's.
class ClockCheck {
 public:
  struct Offset {
    int64_t ahead_ns = 0;  // to be added to the device's times; 0: nothing contradicts
    bool sure = false;
  };

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
      if (delay_ns < kHeldNs - kClocksAgreeNs) ++soon_;
      if (delay_ns < -kClocksAgreeNs) early_ns_.push_back(delay_ns);
    }
    std::sort(early_ns_.begin(), early_ns_.end());
    if (early_ns_.size() < std::max(kMinEarly, launched / kOneIn)) early_ns_.clear();
  }

  // How long each wait for the whole device, and each for one copy, lasted beyond what it waited for.
  void LookAtWaits(const std::vector<uint32_t>& by_launch) {
    LookAtWaitsForAll(by_launch);
    LookAtWaitsForCopies();
    std::sort(beyond_ns_.begin(), beyond_ns_.end());
  }

  // How long before it began what found the whole device idle had been launched.
  void LookAtIdleTime() {
    if (MuchIsBare()) return;
    std::vector<bool> seen(trace_.calls.size());
    int64_t busy_until_ns = INT64_MAX;  // what ran before the first operation is not known
    for (const DeviceOp& op : trace_.ops) {
      const bool first_of_its_launch =
          op.call != kNone && RunsOperations(trace_.calls[op.call].kind) && !seen[op.call];
      if (op.call != kNone) seen[op.call] = true;
      if (first_of_its_launch && busy_until_ns < op.begin_ns - kClocksAgreeNs)
        held_ns_.push_back(op.begin_ns - op.launch_end_ns);
      busy_until_ns = busy_until_ns == INT64_MAX ? op.end_ns : std::max(busy_until_ns, op.end_ns);
    }
    std::sort(held_ns_.begin(), held_ns_.end());
  }

  Offset Find() const {
    if (!early_ns_.empty()) return TooEarly();
    const Offset by_waits = TooLateByWaits();
    if (by_waits.sure) return by_waits;
    const Offset by_idle_time = TooLateByIdleTime();
    const bool explains_all = by_idle_time.ahead_ns <= by_waits.ahead_ns + kClocksAgreeNs;
    return explains_all ? by_idle_time : by_waits;
  }

 private:
  // Whether calls that should have run something did not. The runtime's call makes the driver's, and either may have the
  // operation's id: what counts is the outer one.
  bool MuchIsBare() const {
    std::vector<bool> ran(trace_.calls.size());
    for (const DeviceOp& op : trace_.ops) {
      if (op.call != kNone) ran[op.call] = true;
    }
    size_t calls = 0, ran_something = 0;
    std::vector<uint32_t> outer(trace_.threads.size() + 1, kNone);
    std::vector<bool> counted(trace_.calls.size());
    for (uint32_t i = 0; i < trace_.calls.size(); ++i) {
      const HostCall& call = trace_.calls[i];
      if (!RunsOperations(call.kind) && call.kind != CallKind::kCopy && call.kind != CallKind::kMemset)
        continue;
      const uint32_t within = Outermost(i, &outer[call.thread]);
      if (within == i) ++calls;
      if (ran[i] && !counted[within]) {
        counted[within] = true;
        ++ran_something;
      }
    }
    return (calls - ran_something) * kBareOneIn > calls;
  }

  // The call, or the last one of its thread where that one contains it. By begin.
  uint32_t Outermost(uint32_t call, uint32_t* last) const {
    if (*last == kNone || trace_.calls[call].end_ns > trace_.calls[*last].end_ns) *last = call;
    return *last;
  }

  void LookAtWaitsForAll(const std::vector<uint32_t>& by_launch) {
    size_t next = 0;
    int64_t end_ns = INT64_MIN, launched_ns = INT64_MIN;
    for (const HostCall& call : trace_.calls) {
      if (!WaitsForDevice(trace_, call)) continue;
      for (; next < by_launch.size() && trace_.ops[by_launch[next]].launch_begin_ns < call.begin_ns; ++next) {
        end_ns = std::max(end_ns, trace_.ops[by_launch[next]].end_ns);
        launched_ns = std::max(launched_ns, trace_.ops[by_launch[next]].launch_end_ns);
      }
      if (end_ns == INT64_MIN || launched_ns > call.begin_ns) continue;  // another thread was still launching
      beyond_ns_.push_back(call.end_ns - end_ns);
      if (beyond_ns_.back() < -kClocksAgreeNs && late_of_one_wait_ns_ == 0)
        LookAtWhatEndsAfter(call, by_launch, next);
    }
  }

  // One wait is enough where several operations that it held end long after it: they cannot all have wrong times.
  void LookAtWhatEndsAfter(const HostCall& wait, const std::vector<uint32_t>& by_launch, size_t launched) {
    if (++looked_at_ > kMostWaits) return;
    size_t late = 0;
    int64_t least_ns = INT64_MAX;
    for (size_t i = launched; i-- > 0 && launched - i <= kMostLookedAt && late < kMinEarly;) {
      const int64_t late_ns = trace_.ops[by_launch[i]].end_ns - wait.end_ns;
      if (late_ns <= kClocksAgreeNs) continue;
      ++late;
      least_ns = std::min(least_ns, late_ns);
    }
    if (late == kMinEarly) late_of_one_wait_ns_ = least_ns;
  }

  // `.item()`: a copy to the host, and at once a wait for its stream.
  void LookAtWaitsForCopies() {
    std::vector<uint32_t> op_of(trace_.calls.size(), kNone);
    for (uint32_t i = 0; i < trace_.ops.size(); ++i) {
      if (trace_.ops[i].call != kNone && TheHostWants(trace_.ops[i])) op_of[trace_.ops[i].call] = i;
    }
    std::vector<uint32_t> outer(trace_.threads.size() + 1, kNone);
    for (uint32_t i = 0; i < trace_.calls.size(); ++i) {
      const HostCall& call = trace_.calls[i];
      const uint32_t before = outer[call.thread];
      const uint32_t within = Outermost(i, &outer[call.thread]);
      if (within != i && op_of[within] == kNone) op_of[within] = op_of[i];
      if (before == kNone || within != i || op_of[before] == kNone || WaitsForDevice(trace_, call)) continue;
      if (!WaitsForStream(trace_, call) || call.begin_ns - trace_.calls[before].end_ns > kAtOnceNs) continue;
      beyond_ns_.push_back(call.end_ns - trace_.ops[op_of[before]].end_ns);
    }
  }

  // A copy that blocks, or of one value: others may be of a stream that nobody waits for.
  bool TheHostWants(const DeviceOp& op) const {
    if (op.lane == Lane::kD2hPageable) return true;
    return op.lane == Lane::kD2hPinned && op.detail != kNone &&
           trace_.copy_bytes[op.detail] <= kOneValueBytes;
  }

  Offset TooEarly() const {
    const int64_t most_ns =
        beyond_ns_.size() >= kMinEarly ? Low(beyond_ns_, 4) : INT64_MAX;  // that they can be moved
    const int64_t least_ns = -Low(early_ns_, 20);
    return {std::min(least_ns + kLeastDelayNs, std::max(least_ns, most_ns)),
            most_ns >= least_ns - kClocksAgreeNs && AgreeOn(early_ns_, -least_ns)};
  }

  // Only a wait that the device kept until its end shows the whole offset; the others ended later than they had to.
  Offset TooLateByWaits() const {
    if (beyond_ns_.size() < kMinEarly || beyond_ns_[kMinEarly - 1] >= -kClocksAgreeNs)
      return {-late_of_one_wait_ns_, false};
    const int64_t whole_ns = beyond_ns_[kMinEarly - 1];
    return {whole_ns, least_delay_ns_ + whole_ns >= -kClocksAgreeNs && AgreeOn(beyond_ns_, whole_ns)};
  }

  Offset TooLateByIdleTime() const {
    if (held_ns_.size() < kMinHeld || held_ns_.front() < kHeldNs) return {};
    if (soon_ >= kMinEarly || WaitsAgree()) return {};
    const int64_t whole_ns = kLeastDelayNs - held_ns_.front();
    return {whole_ns, least_delay_ns_ + whole_ns >= -kClocksAgreeNs && AgreeOn(held_ns_, held_ns_.front())};
  }

  // Several waits ended when what they waited for did: the clocks are one.
  bool WaitsAgree() const {
    return std::count_if(beyond_ns_.begin(), beyond_ns_.end(), [](int64_t each_ns) {
             return std::abs(each_ns) <= kClocksAgreeNs;
           }) >= static_cast<std::ptrdiff_t>(kMinEarly);
  }

  // Whether several contradictions are as large: those of operations that found the device idle, and of waits that the
  // device kept.
  static bool AgreeOn(const std::vector<int64_t>& all_ns, int64_t whole_ns) {
    const int64_t near_ns = std::max(2 * kClocksAgreeNs, std::abs(whole_ns) / 50);
    return std::count_if(all_ns.begin(), all_ns.end(), [&](int64_t each_ns) {
             return std::abs(each_ns - whole_ns) <= near_ns;
           }) >= static_cast<std::ptrdiff_t>(kMinEarly);
  }

  const DeviceTrace& trace_;
  std::vector<int64_t> early_ns_;   // sorted: delays of the operations that begin before their launches
  std::vector<int64_t> beyond_ns_;  // sorted
  std::vector<int64_t> held_ns_;    // sorted
  int64_t late_of_one_wait_ns_ = 0;
  size_t looked_at_ = 0;  // waits
  size_t soon_ = 0;       // operations that began so soon after their launches that no clock is late
  int64_t least_delay_ns_ = INT64_MAX;
};

}  // namespace

bool AlignDeviceClock(DeviceTrace* trace) {
  if (trace->ids_repeat()) return false;  // then operations may be tied to calls of other processes
  const std::vector<uint16_t> device_of = DevicesOfStreams(*trace);
  const std::vector<uint32_t> by_launch = OrderOfLaunches(*trace);
  if (by_launch.empty()) return false;
  const uint16_t devices = static_cast<uint16_t>(*std::max_element(device_of.begin(), device_of.end()) + 1);
  bool moved = false, all_sure = true;
  for (uint16_t device = 0; device < devices; ++device) {
    ClockCheck check(*trace, by_launch, device_of, device);
    if (devices == 1) {  // of several, a wait is for one that is not recorded, and one may wait for another
      check.LookAtWaits(by_launch);
      check.LookAtIdleTime();
    }
    const ClockCheck::Offset offset = check.Find();
    if (offset.ahead_ns == 0) continue;
    record::Noticed& noticed = trace->noticed;
    if (!noticed.clock_ahead_ns || std::abs(*noticed.clock_ahead_ns) < std::abs(offset.ahead_ns))
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
