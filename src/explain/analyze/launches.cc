// From the host's call to the device: how long the call and the operation took, and the delay between them.
#include <algorithm>
#include <map>

#include "explain/analyze/distribution.h"
#include "explain/analyze/section.h"

namespace fullbore::analyze {
namespace {

using timeline::DeviceOp;

// Outliers as in Holistic Trace Analysis: runtime_cutoff = 50 us, launch_delay_cutoff = 100 us.
constexpr int64_t kLongCallNs = 50'000;
constexpr int64_t kLongDelayNs = 100'000;

int64_t CallNs(const DeviceOp& op) { return op.launch_end_ns - op.launch_begin_ns; }
int64_t DelayNs(const DeviceOp& op) { return std::max<int64_t>(0, op.begin_ns - op.launch_end_ns); }

void AppendLaunches(const RankTrace& rank, Table* table) {
  for (const DeviceOp& op : rank.trace().ops) {
    if (op.call == timeline::kNone) continue;
    const timeline::HostCall& call = rank.trace().calls[op.call];
    table->Add({rank.rank(), op.launch_begin_ns - rank.begin_ns(), static_cast<int64_t>(op.correlation),
                rank.Name(call.name), rank.Name(op.name), rank.Stream(op.stream), CallNs(op),
                op.end_ns - op.begin_ns, DelayNs(op)});
  }
}

struct Summary {
  Distribution call, device, delay;
  int64_t shorter = 0, long_calls = 0, long_delays = 0;
};

void AppendSummary(const RankTrace& rank, Table* table) {
  std::map<std::string, Summary> by_type;
  int64_t unknown = 0;
  for (const DeviceOp& op : rank.trace().ops) {
    if (op.call == timeline::kNone) {
      ++unknown;
      continue;
    }
    Summary& summary = by_type[op.kernel ? "kernel" : op.lane == timeline::Lane::kMemset ? "memset" : "copy"];
    summary.call.Add(CallNs(op));
    summary.device.Add(op.end_ns - op.begin_ns);
    summary.delay.Add(DelayNs(op));
    if (op.end_ns - op.begin_ns < CallNs(op)) ++summary.shorter;
    if (CallNs(op) > kLongCallNs) ++summary.long_calls;
    if (DelayNs(op) > kLongDelayNs) ++summary.long_delays;
  }
  for (const auto& [type, s] : by_type) {
    table->Add({rank.rank(), type, s.call.count(), s.call.mean(), s.call.Quantile(0.5), s.call.Quantile(0.99),
                s.long_calls, s.device.mean(), s.device.Quantile(0.5), s.shorter, s.delay.mean(),
                s.delay.Quantile(0.5), s.delay.Quantile(0.99), s.long_delays});
  }
  if (unknown > 0) {
    table->Note("rank " + std::to_string(rank.rank()) + ": " + std::to_string(unknown) +
                " operations are left out because their launch is not in the trace");
  }
}

}  // namespace

const Section kLaunches = {"launches",
                           "every launch: the host's call, the device's time, the delay between them",
                           {{"rank", ""},
                            {"t_ns", "ns"},
                            {"correlation", ""},
                            {"call", ""},
                            {"name", ""},
                            {"stream", ""},
                            {"call_ns", "ns"},
                            {"device_ns", "ns"},
                            {"delay_ns", "ns"}},
                           AppendLaunches};

const Section kLaunchSummary = {
    "launch-summary",
    "launches summed: short kernels, long calls (> 50 us), long delays (> 100 us)",
    {{"rank", ""},
     {"type", ""},
     {"count", "count"},
     {"call_mean_ns", "ns"},
     {"call_median_ns", "ns"},
     {"call_p99_ns", "ns"},
     {"long_calls", "count"},
     {"device_mean_ns", "ns"},
     {"device_median_ns", "ns"},
     {"shorter_than_call", "count"},
     {"delay_mean_ns", "ns"},
     {"delay_median_ns", "ns"},
     {"delay_p99_ns", "ns"},
     {"long_delays", "count"}},
    AppendSummary};

}  // namespace fullbore::analyze
