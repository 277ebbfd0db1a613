#include "timeline/device/clock.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/clock.h"
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
