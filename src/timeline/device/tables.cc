#include "timeline/device/tables.h"

#include <algorithm>
#include <map>

#include "timeline/device/exchanges.h"
#include "timeline/device/places.h"

namespace fullbore::timeline {
namespace {

std::vector<record::KernelStats> Kernels(const DeviceTrace& trace, const DeviceShares& shares) {
  std::map<NameId, record::KernelStats> by_name;
  for (const DeviceOp& op : trace.ops) {
    if (!op.kernel || !shares.Judges(op)) continue;
    record::KernelStats& stats = by_name[op.name];
    const int64_t ns = op.end_ns - op.begin_ns;
    if (stats.count == 0) {
      stats.name = trace.names[op.name];
      stats.kernel_class = Name(op.lane);
      stats.min_ns = ns;
    }
    ++stats.count;
    stats.sum_ns += ns;
    stats.min_ns = std::min(stats.min_ns, ns);
    stats.max_ns = std::max(stats.max_ns, ns);
    stats.duration_ns.Add(static_cast<double>(ns));
  }
  std::vector<record::KernelStats> kernels;
  for (auto& [name, stats] : by_name) kernels.push_back(std::move(stats));
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto& a, const auto& b) { return a.sum_ns > b.sum_ns; });
  return kernels;
}

std::vector<record::CopyStats> Copies(const DeviceTrace& trace, const DeviceShares& shares) {
  std::map<Lane, record::CopyStats> by_lane;
  for (const DeviceOp& op : trace.ops) {
    if ((Bit(op.lane) & kCopyLanes) == 0 || !shares.Judges(op)) continue;
    record::CopyStats& stats = by_lane[op.lane];
    ++stats.count;
    stats.sum_ns += op.end_ns - op.begin_ns;
    stats.duration_ns.Add(static_cast<double>(op.end_ns - op.begin_ns));
    const int64_t bytes = op.kernel || op.detail == kNone ? -1 : trace.copy_bytes[op.detail];
    if (bytes >= 0) stats.bytes = stats.bytes.value_or(0) + bytes;
  }
  std::vector<record::CopyStats> copies;
  for (auto& [lane, stats] : by_lane) {
    stats.kind = Name(lane);
    stats.exposed_ns = shares.totals.lane_ns[static_cast<size_t>(lane)];
    copies.push_back(std::move(stats));
  }
  return copies;
}

std::vector<record::SyncStats> Syncs(const DeviceTrace& trace, const HostActivity& host,
                                     const DeviceShares& shares) {
  const Places places(trace);
  std::map<std::pair<std::string, std::string>, record::SyncStats> by_place;
  for (uint32_t i = 0; i < trace.calls.size(); ++i) {
    if (!host.Blocks(i)) continue;
    const HostCall& call = trace.calls[i];
    const std::string name(trace.names[call.name]);
    const std::string where = places.Of(call);
    record::SyncStats& stats = by_place[{name, where}];
    stats.call = name;
    stats.where = where;
    ++stats.count;
    stats.blocked_ns += call.end_ns - call.begin_ns;
    const auto idle = shares.idle_by_call.find(i);
    if (idle != shares.idle_by_call.end()) stats.idle_ns += idle->second;
  }
  std::vector<record::SyncStats> syncs;
  for (auto& [place, stats] : by_place) syncs.push_back(std::move(stats));
  std::stable_sort(syncs.begin(), syncs.end(),
                   [](const auto& a, const auto& b) { return a.idle_ns > b.idle_ns; });
  return syncs;
}

std::vector<record::CollectiveStats> Collectives(const DeviceTrace& trace, const DeviceShares& shares) {
  std::map<std::pair<std::string, NameId>, record::CollectiveStats> by_kind;
  std::map<record::CollectiveStats*, int64_t> activations_ns;
  const std::vector<bool> activations = CarryingActivations(trace, Phases(trace));
  for (uint32_t i = 0; i < trace.ops.size(); ++i) {
    const DeviceOp& op = trace.ops[i];
    if (op.lane != Lane::kComm || !shares.Judges(op)) continue;
    const Collective about = op.detail == kNone ? Collective{} : trace.collectives[op.detail];
    const std::string kind = CollectiveKind(trace, op);
    record::CollectiveStats& stats = by_kind[{kind, about.group}];
    const int64_t ns = op.end_ns - op.begin_ns;
    stats.kind = kind;
    stats.group = trace.names[about.group];
    if (about.group_size > 0)
      stats.group_size = about.group_size;
    else if (about.group == 0 && trace.world_size)
      stats.group_size = *trace.world_size;  // traces before groups had names
    ++stats.count;
    stats.sum_ns += ns;
    stats.exposed_ns += shares.comm_exposed.Within(op.begin_ns, op.end_ns);
    stats.duration_ns.Add(static_cast<double>(ns));
    if (activations[i]) activations_ns[&stats] += ns;
    if (about.bytes < 0) continue;
    stats.bytes = stats.bytes.value_or(0) + about.bytes;
    stats.bytes_ns += ns;
  }
  for (const auto& [stats, ns] : activations_ns) stats->of_gradients = 2 * ns < stats->sum_ns;
  std::vector<record::CollectiveStats> collectives;
  for (auto& [kind, stats] : by_kind) collectives.push_back(std::move(stats));
  std::stable_sort(collectives.begin(), collectives.end(),
                   [](const auto& a, const auto& b) { return a.sum_ns > b.sum_ns; });
  return collectives;
}

std::optional<record::LaunchStats> Launches(const DeviceTrace& trace, const DeviceShares& shares) {
  record::LaunchStats stats;
  for (const DeviceOp& op : trace.ops) {
    if (op.call == kNone || !op.kernel || !shares.Judges(op)) continue;
    const int64_t call_ns = op.launch_end_ns - op.launch_begin_ns;
    ++stats.count;
    stats.call_ns.Add(static_cast<double>(call_ns));
    stats.delay_ns.Add(static_cast<double>(std::max<int64_t>(0, op.begin_ns - op.launch_end_ns)));
    if (op.end_ns - op.begin_ns < call_ns) ++stats.short_kernels;
  }
  if (stats.count == 0) return std::nullopt;
  stats.late = shares.late_launches;
  return stats;
}

}  // namespace

std::string CollectiveKind(const DeviceTrace& trace, const DeviceOp& op) {
  if (op.detail != kNone && trace.collectives[op.detail].kind != 0) {
    return std::string(trace.names[trace.collectives[op.detail].kind]);
  }
  const std::string_view kind = CollectiveOfKernel(trace.names[op.name]);
  return kind.empty() ? "collective" : std::string(kind);
}

record::DeviceTables TablesOf(const DeviceTrace& trace, const HostActivity& host,
                              const DeviceShares& shares) {
  record::DeviceTables tables;
  tables.kernels = Kernels(trace, shares);
  tables.copies = Copies(trace, shares);
  tables.syncs = Syncs(trace, host, shares);
  tables.collectives = Collectives(trace, shares);
  tables.launches = Launches(trace, shares);
  return tables;
}

}  // namespace fullbore::timeline
