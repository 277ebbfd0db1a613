// What each stream's idle time waited for, from one operation to the next on it:
//   host_wait    the host launched the next operation only after the previous one had ended
//   kernel_wait  both were queued, and the gap is no longer than usual between consecutive kernels
//   other        both were queued, and the gap is longer: the stream waited for another one
#include <algorithm>

#include "explain/analyze/distribution.h"
#include "explain/analyze/section.h"

namespace fullbore::analyze {
namespace {

// As in Holistic Trace Analysis (consecutive_kernel_delay = 30; its documentation says ns, its code compares
// microseconds).
constexpr int64_t kKernelWaitNs = 30'000;

struct Waits {
  Distribution host, kernel, other;
};

Waits WaitsOf(const std::vector<const timeline::DeviceOp*>& ops, int64_t* unknown) {
  Waits waits;
  int64_t end = ops.front()->end_ns;
  for (size_t i = 1; i < ops.size(); ++i) {
    const timeline::DeviceOp& op = *ops[i];
    const int64_t idle = op.begin_ns - end;
    const bool known = op.call != timeline::kNone;
    if (idle > 0 && known && op.launch_begin_ns > end) {
      waits.host.Add(idle);
    } else if (idle > 0) {
      if (!known) ++*unknown;
      (idle < kKernelWaitNs ? waits.kernel : waits.other).Add(idle);
    }
    end = std::max(end, op.end_ns);
  }
  return waits;
}

void Append(const RankTrace& rank, Table* table) {
  int64_t unknown = 0;
  for (const auto& [stream, ops] : rank.ByStream()) {
    const Waits waits = WaitsOf(ops, &unknown);
    const int64_t all = waits.host.sum() + waits.kernel.sum() + waits.other.sum();
    const auto add = [&](const char* category, const Distribution& idle) {
      if (idle.count() == 0) return;
      table->Add({rank.rank(), rank.Stream(stream), category, idle.count(), idle.sum(),
                  static_cast<double>(idle.sum()) / static_cast<double>(all), idle.mean(), idle.Quantile(0.5),
                  idle.max()});
    };
    add("host_wait", waits.host);
    add("kernel_wait", waits.kernel);
    add("other", waits.other);
  }
  if (unknown > 0) {
    table->Note(
        "rank " + std::to_string(rank.rank()) + ": the launch of " + std::to_string(unknown) +
        " operations behind idle time is not in the trace: their wait counts as kernel_wait or other");
  }
}

}  // namespace

const Section kIdleBreakdown = {
    "idle-breakdown",
    "idle time of each stream: waiting for the host, for the next kernel, for others",
    {{"rank", ""},
     {"stream", ""},
     {"category", ""},
     {"count", "count"},
     {"idle_ns", "ns"},
     {"idle_ratio", "ratio"},
     {"mean_ns", "ns"},
     {"median_ns", "ns"},
     {"max_ns", "ns"}},
    Append};

}  // namespace fullbore::analyze
