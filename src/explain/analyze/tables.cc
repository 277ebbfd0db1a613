// Collectives and places where the host waits: the tables of the recording, row by row.
#include "timeline/device/tables.h"

#include "explain/analyze/section.h"
#include "record/collective.h"

namespace fullbore::analyze {
namespace {

template <typename Number>
Cell Known(const std::optional<Number>& value) {
  return value ? Cell(*value) : Cell();
}

void AppendCollectives(const RankTrace& rank, Table* table) {
  const record::DeviceTables tables = timeline::TablesOf(rank.trace(), rank.host(), rank.shares());
  for (const record::CollectiveStats& stats : tables.collectives) {
    table->Add({rank.rank(), stats.kind, stats.group, Known(stats.group_size), stats.count,
                Known(stats.bytes), stats.sum_ns, stats.exposed_ns, stats.duration_ns.mean(),
                stats.duration_ns.max(), Known(record::AlgorithmBandwidth(stats)),
                Known(record::BusBandwidth(stats))});
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
