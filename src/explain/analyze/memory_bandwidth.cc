// Copies and memsets: bytes per second, over time and by kind.
#include <algorithm>
#include <map>

#include "explain/analyze/distribution.h"
#include "explain/analyze/section.h"

namespace fullbore::analyze {
namespace {

using timeline::DeviceOp;

int64_t BytesOf(const RankTrace& rank, const DeviceOp& op) {
  const bool copy = !op.kernel && (timeline::Bit(op.lane) & timeline::kCopyLanes) != 0;
  return copy && op.detail != timeline::kNone ? rank.trace().copy_bytes[op.detail] : -1;
}

// An operation that has no length at the profiler's resolution took at least a nanosecond.
double Bandwidth(int64_t bytes, const DeviceOp& op) {
  return static_cast<double>(bytes) * 1e9 /
         static_cast<double>(std::max<int64_t>(1, op.end_ns - op.begin_ns));
}

void AppendSeries(const RankTrace& rank, Table* table) {
  struct Change {
    int64_t t_ns;
    double delta;
  };
  std::map<timeline::Lane, std::vector<Change>> kinds;
  for (const DeviceOp& op : rank.trace().ops) {
    const int64_t bytes = BytesOf(rank, op);
    if (bytes < 0) continue;
    kinds[op.lane].push_back({op.begin_ns, Bandwidth(bytes, op)});
    kinds[op.lane].push_back({std::max(op.end_ns, op.begin_ns + 1), -Bandwidth(bytes, op)});
  }
  for (auto& [lane, changes] : kinds) {
    std::stable_sort(changes.begin(), changes.end(),
                     [](const Change& a, const Change& b) { return a.t_ns < b.t_ns; });
    double now = 0;
    int64_t running = 0;
    for (const Change& change : changes) {
      running += change.delta >= 0 ? 1 : -1;
      now = running == 0 ? 0 : now + change.delta;  // nothing runs: exactly 0, whatever the sums lost
      table->Add({rank.rank(), std::string(record::Name(lane)), change.t_ns - rank.begin_ns(), now});
    }
  }
}

void AppendSummary(const RankTrace& rank, Table* table) {
  struct Summary {
    int64_t bytes = 0;
    Distribution ns, bandwidth;
  };
  std::map<timeline::Lane, Summary> kinds;
  int64_t unknown = 0;
  for (const DeviceOp& op : rank.trace().ops) {
    if (op.kernel || (timeline::Bit(op.lane) & timeline::kCopyLanes) == 0) continue;
    const int64_t bytes = BytesOf(rank, op);
    if (bytes < 0) {
      ++unknown;
      continue;
    }
    Summary& summary = kinds[op.lane];
    summary.bytes += bytes;
    summary.ns.Add(op.end_ns - op.begin_ns);
    summary.bandwidth.Add(static_cast<int64_t>(Bandwidth(bytes, op)));
  }
  for (const auto& [lane, s] : kinds) {
    const double mean = s.ns.sum() > 0 ? static_cast<double>(s.bytes) * 1e9 / static_cast<double>(s.ns.sum())
                                       : s.bandwidth.mean();
    table->Add({rank.rank(), std::string(record::Name(lane)), s.ns.count(), s.bytes, s.ns.sum(), mean,
                s.bandwidth.Quantile(0), s.bandwidth.Quantile(0.5), s.bandwidth.Quantile(1)});
  }
  if (unknown > 0)
    table->Note(std::to_string(unknown) + " copies are left out: the trace does not say their size");
}

}  // namespace

const Section kMemoryBandwidth = {
    "memory-bandwidth",
    "bytes per second of copies and memsets over time, one row per change",
    {{"rank", ""}, {"kind", ""}, {"t_ns", "ns"}, {"bandwidth_bytes_per_s", "bytes/s"}},
    AppendSeries};

const Section kMemorySummary = {"memory-summary",
                                "copies and memsets by kind: bytes, time, bandwidth",
                                {{"rank", ""},
                                 {"kind", ""},
                                 {"count", "count"},
                                 {"bytes", "bytes"},
                                 {"sum_ns", "ns"},
                                 {"mean_bytes_per_s", "bytes/s"},
                                 {"min_bytes_per_s", "bytes/s"},
                                 {"median_bytes_per_s", "bytes/s"},
                                 {"max_bytes_per_s", "bytes/s"}},
                                AppendSummary};

}  // namespace fullbore::analyze
