#include "timeline/device_like_hta.h"

#include <algorithm>
#include <set>
#include <vector>

#include "timeline/device_sweep.h"
#include "timeline/device_totals.h"

namespace fullbore::timeline {
namespace {

constexpr int64_t kMicrosecond = 1000;

struct Interval {
  int64_t begin_ns, end_ns;
  Lane lane;
};

// Where the window ends: at the begin of the last step, if there are several.
std::optional<int64_t> LastStepBegin(const DeviceTrace& trace) {
  std::set<int64_t> numbers;
  for (const StepMark& step : trace.steps) numbers.insert(step.number);
  if (numbers.size() < 2) return std::nullopt;
  return trace.steps.back().begin_ns;
}

std::vector<Interval> Rounded(const DeviceTrace& trace) {
  const auto last_step = LastStepBegin(trace);
  std::vector<Interval> intervals;
  for (const DeviceOp& op : trace.ops) {
    if (last_step && (op.call == kNone || op.launch_begin_ns >= *last_step)) continue;
    const int64_t begin = (op.begin_ns + kMicrosecond - 1) / kMicrosecond * kMicrosecond;
    const int64_t end = std::max(begin, op.end_ns / kMicrosecond * kMicrosecond);
    intervals.push_back({begin, end, op.lane});
  }
  return intervals;
}

struct TotalsSink : DeviceSweep::Sink {
  void Take(const Segment& segment) override { totals.Add(segment.mask, segment.end_ns - segment.begin_ns); }
  DeviceTotals totals;
};

}  // namespace

HtaBreakdown BreakDownLikeHta(const DeviceTrace& trace) {
  const std::vector<Interval> intervals = Rounded(trace);
  HtaBreakdown breakdown;
  if (intervals.empty()) return breakdown;
  constexpr size_t kConcurrent = 4096;
  TotalsSink sink;
  const int64_t begin = intervals.front().begin_ns;
  int64_t end = begin;
  DeviceSweep sweep(kConcurrent, begin, &sink);
  for (const Interval& interval : intervals) {
    sweep.AdvanceTo(interval.begin_ns);
    sweep.Add(interval.begin_ns, interval.end_ns, interval.lane, 0);
    end = std::max(end, interval.end_ns);
  }
  sweep.Finish(end);
  breakdown.kernel_time_ns = end - begin;
  breakdown.idle_ns = breakdown.kernel_time_ns - sink.totals.busy_ns;
  breakdown.compute_ns = sink.totals.compute_ns;
  breakdown.non_compute_ns = sink.totals.busy_ns - sink.totals.compute_ns;
  if (sink.totals.comm_ns > 0) {
    breakdown.comm_overlap_ratio =
        static_cast<double>(sink.totals.comm_overlapped_ns) / static_cast<double>(sink.totals.comm_ns);
  }
  return breakdown;
}

}  // namespace fullbore::timeline
