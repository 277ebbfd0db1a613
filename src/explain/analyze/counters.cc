// Counters that the trace carries: memory, counter tracks, and CUPTI's counters of single kernels with the
// operator that launched each.
#include <algorithm>

#include "explain/analyze/section.h"

namespace fullbore::analyze {
namespace {

using timeline::CallKind;

void AppendReadings(const RankTrace& rank, Table* table) {
  for (const auto& [name, readings] : rank.trace().counters) {
    const bool bytes = name.starts_with("device_memory");
    for (const timeline::CounterReading& reading : readings) {
      table->Add({rank.rank(), name.starts_with("counter/") ? name.substr(8) : name, bytes ? "bytes" : "",
                  reading.t_ns - rank.begin_ns(), reading.value, Cell(), Cell()});
    }
  }
}

// The profiler measures each kernel as a range of its own and records no correlation: the n-th range is the
// n-th launch, where their numbers agree.
void AppendKernels(const RankTrace& rank, Table* table) {
  const auto& ranges = rank.trace().kernel_counters;
  if (ranges.empty()) return;
  std::vector<const timeline::HostCall*> launches;
  for (const timeline::HostCall& call : rank.trace().calls) {
    if (call.kind == CallKind::kLaunch) launches.push_back(&call);
  }
  int64_t last_range = -1;
  for (const timeline::KernelCounter& counter : ranges)
    last_range = std::max<int64_t>(last_range, counter.range);
  const bool tied = static_cast<size_t>(last_range + 1) == launches.size();
  if (!tied) {
    table->Note("rank " + std::to_string(rank.rank()) + ": " + std::to_string(last_range + 1) +
                " kernels have counters and " + std::to_string(launches.size()) +
                " were launched: which operator launched which cannot be told");
  }
  for (const timeline::KernelCounter& counter : ranges) {
    Cell launched_by;
    if (tied) {
      const timeline::HostCall& call = *launches[counter.range];
      const uint32_t index = rank.OperatorAt(call.thread, call.begin_ns);
      if (index != timeline::kNone) launched_by = rank.Name(rank.operators()[index].name);
    }
    table->Add({rank.rank(), rank.Name(counter.counter), "", counter.t_ns - rank.begin_ns(), counter.value,
                rank.Name(counter.kernel), launched_by});
  }
}

void Append(const RankTrace& rank, Table* table) {
  AppendReadings(rank, table);
  AppendKernels(rank, table);
}

}  // namespace

const Section kCounters = {"counters",
                           "counters in the trace: memory, counter tracks, CUPTI's counters by kernel",
                           {{"rank", ""},
                            {"counter", ""},
                            {"unit", ""},
                            {"t_ns", "ns"},
                            {"value", ""},
                            {"kernel", ""},
                            {"launched_by", ""}},
                           Append};

}  // namespace fullbore::analyze
