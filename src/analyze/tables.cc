// Collectives and places where the host waits: the tables that the recording keeps, a row a row.
#include "analyze/section.h"
#include "timeline/device_tables.h"

namespace fullbore::analyze {
namespace {

Cell Known(const std::optional<int64_t>& value) { return value ? Cell(*value) : Cell(); }

// The share of the algorithm's bytes that crosses the wire, by kind and size of the group (NVIDIA's
// nccl-tests, PERFORMANCE.md); 0 where it is not known.
double BusFactor(const std::string& kind, int64_t group) {
  const auto n = static_cast<double>(group);
  if (group < 2) return 0;
  if (kind.find("reduce_scatter") != std::string::npos || kind.find("all_gather") != std::string::npos ||
      kind.find("allgather") != std::string::npos || kind.find("all_to_all") != std::string::npos ||
      kind.find("alltoall") != std::string::npos) {
    return (n - 1) / n;
  }
  if (kind.find("all_reduce") != std::string::npos || kind.find("allreduce") != std::string::npos)
    return 2 * (n - 1) / n;
  return kind.find("broadcast") != std::string::npos || kind == "reduce" ? 1 : 0;
}

void AppendCollectives(const RankTrace& rank, Table* table) {
  const record::DeviceTables tables = timeline::TablesOf(rank.trace(), rank.host(), rank.shares());
  for (const record::CollectiveStats& stats : tables.collectives) {
    Cell algorithm;
    Cell bus;
    if (stats.bytes && stats.bytes_ns > 0) {
      const double bandwidth = static_cast<double>(*stats.bytes) * 1e9 / static_cast<double>(stats.bytes_ns);
      algorithm = bandwidth;
      const std::optional<int> world = rank.trace().world_size;
      const double factor = BusFactor(stats.kind, stats.group_size.value_or(world.value_or(0)));
      if (factor > 0) bus = bandwidth * factor;
    }
    table->Add({rank.rank(), stats.kind, stats.group, Known(stats.group_size), stats.count,
                Known(stats.bytes), stats.sum_ns, stats.exposed_ns, stats.duration_ns.mean(),
                stats.duration_ns.max(), algorithm, bus});
  }
}

void AppendSyncs(const RankTrace& rank, Table* table) {
  if (!rank.trace().has_device_activity()) return;
  const record::DeviceTables tables = timeline::TablesOf(rank.trace(), rank.host(), rank.shares());
  for (const record::SyncStats& stats : tables.syncs)
    table->Add({rank.rank(), stats.call, stats.where, stats.count, stats.blocked_ns, stats.idle_ns});
}

}  // namespace

const Section kCollectives = {"collectives",
                              "collectives by kind and process group: time, bytes, bandwidths",
                              {{"rank", ""},
                               {"kind", ""},
                               {"group", ""},
                               {"group_size", "count"},
                               {"count", "count"},
                               {"bytes", "bytes"},
                               {"sum_ns", "ns"},
                               {"exposed_ns", "ns"},
                               {"mean_ns", "ns"},
                               {"max_ns", "ns"},
                               {"algorithm_bytes_per_s", "bytes/s"},
                               {"bus_bytes_per_s", "bytes/s"}},
                              AppendCollectives};

const Section kSyncs = {
    "syncs",
    "calls in which the host waits for the device, by place, and the idle time they cost",
    {{"rank", ""}, {"call", ""}, {"where", ""}, {"count", "count"}, {"blocked_ns", "ns"}, {"idle_ns", "ns"}},
    AppendSyncs};

}  // namespace fullbore::analyze
