// The sweep over one rank's whole trace: totals, the shares of each step, and the device time
// that each blocking call cost.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "record/recording.h"
#include "record/step_timeline.h"
#include "timeline/device/host.h"
#include "timeline/device/steps.h"
#include "timeline/device/totals.h"
#include "timeline/device/trace.h"

namespace fullbore::timeline {

// Exposed time up to a moment, to compute how much of an interval was exposed.
class ExposedTime {
 public:
  void Add(int64_t begin_ns, int64_t end_ns);  // in order
  int64_t Within(int64_t begin_ns, int64_t end_ns) const;

 private:
  struct Stretch {
    int64_t begin_ns, end_ns, before_ns;
  };
  int64_t Until(int64_t t_ns) const;

  std::vector<Stretch> stretches_;
};

struct DeviceShares {
  int64_t begin_ns = 0;  // the first device activity
  int64_t end_ns = 0;    // the end of the last
  DeviceTotals totals;   // over that span
  std::vector<record::Step> steps;
  std::map<uint32_t, int64_t> idle_by_call;  // blocking call -> device idle because of it
  ExposedTime comm_exposed;
  std::vector<record::ShareSpan> spans;  // of the interval asked for; neighbours of one share are one
  int64_t unexplained_idle = 0;          // intervals whose cause is not recorded
  int64_t late_launches = 0;             // operations that the device had to wait for
  // Of several devices of one process, the one that is judged: that with most operations. Empty if there is only one.
  std::vector<bool> judged_streams;

  bool Judges(const DeviceOp& op) const { return judged_streams.empty() || judged_streams[op.stream]; }
};

// With the spans of `shown`. Of several devices one is judged; while it idles and another one of the process works, it
// waits for that one as it would in a collective.
DeviceShares ShareDeviceTime(const DeviceTrace& trace, const HostActivity& host,
                             const std::vector<StepBounds>& bounds, const StepBounds& shown = {});

// Steps summed over stretches of about a second, as a run records them.
std::vector<record::StepWindow> WindowsOf(const std::vector<record::Step>& steps);

}  // namespace fullbore::timeline
