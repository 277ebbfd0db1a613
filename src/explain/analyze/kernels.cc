// Device operations by name, and device time by what ran at once.
#include <algorithm>
#include <map>

#include "explain/analyze/distribution.h"
#include "explain/analyze/section.h"
#include "timeline/device/sweep.h"

namespace fullbore::analyze {
namespace {

void AppendKernels(const RankTrace& rank, Table* table) {
  std::map<std::pair<timeline::NameId, timeline::Lane>, Distribution> by_name;
  int64_t all = 0;
  for (const timeline::DeviceOp& op : rank.trace().ops) {
    by_name[{op.name, op.lane}].Add(op.end_ns - op.begin_ns);
    all += op.end_ns - op.begin_ns;
  }
  std::vector<std::pair<std::pair<timeline::NameId, timeline::Lane>, Distribution*>> sorted;
  for (auto& [key, times] : by_name) sorted.emplace_back(key, &times);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second->sum() > b.second->sum(); });
  for (const auto& [key, times] : sorted) {
    const double share = all > 0 ? static_cast<double>(times->sum()) / static_cast<double>(all) : 0;
    table->Add({rank.rank(), TypeOf(key.second), std::string(record::Name(key.second)), rank.Name(key.first),
                times->count(), times->sum(), share, times->mean(), times->deviation(), times->min(),
                times->Quantile(0.5), times->Quantile(0.95), times->max()});
  }
}

// The time in which exactly these kinds run: "compute", "compute+comm".
class TypeSink : public timeline::DeviceSweep::Sink {
 public:
  void Take(const timeline::Segment& segment) override {
    if (segment.mask == 0) return;
    std::string types;
    const auto add = [&](uint32_t lanes, const char* type) {
      if ((segment.mask & lanes) != 0) types += (types.empty() ? "" : "+") + std::string(type);
    };
    add(timeline::kComputeLanes, "compute");
    add(timeline::kCommLane, "comm");
    add(timeline::kCopyLanes, "copy");
    ns[types] += segment.end_ns - segment.begin_ns;
    busy_ns += segment.end_ns - segment.begin_ns;
  }

  std::map<std::string, int64_t> ns;
  int64_t busy_ns = 0;
};

void AppendTypes(const RankTrace& rank, Table* table) {
  constexpr size_t kConcurrentOps = 4096;  // everything is sorted: only what runs at once must fit
  const auto& ops = rank.trace().ops;
  if (ops.empty()) return;
  TypeSink sink;
  timeline::DeviceSweep sweep(kConcurrentOps, ops[0].begin_ns, &sink);
  for (size_t i = 0; i < ops.size(); ++i) {
    sweep.AdvanceTo(ops[i].begin_ns);
    sweep.Add(ops[i].begin_ns, ops[i].end_ns, ops[i].lane, static_cast<uint32_t>(i));
  }
  sweep.Finish(rank.shares().end_ns);
  for (const auto& [types, ns] : sink.ns) {
    table->Add({rank.rank(), "together", types, Cell(), ns,
                static_cast<double>(ns) / static_cast<double>(sink.busy_ns)});
  }
  std::map<timeline::Lane, std::pair<int64_t, int64_t>> lanes;
  for (const timeline::DeviceOp& op : ops) {
    ++lanes[op.lane].first;
    lanes[op.lane].second += op.end_ns - op.begin_ns;
  }
  for (const auto& [lane, sum] : lanes) {
    table->Add({rank.rank(), "class", std::string(record::Name(lane)), sum.first, sum.second,
                static_cast<double>(sum.second) / static_cast<double>(sink.busy_ns)});
  }
}

}  // namespace

const Section kKernels = {"kernels",
                          "every kernel and copy by name: count, sum, mean, quantiles",
                          {{"rank", ""},
                           {"type", ""},
                           {"class", ""},
                           {"name", ""},
                           {"count", "count"},
                           {"sum_ns", "ns"},
                           {"share_ratio", "ratio"},
                           {"mean_ns", "ns"},
                           {"deviation_ns", "ns"},
                           {"min_ns", "ns"},
                           {"median_ns", "ns"},
                           {"p95_ns", "ns"},
                           {"max_ns", "ns"}},
                          AppendKernels};

const Section kKernelTypes = {"kernel-types",
                              "device time by kind (what runs at once) and by class of kernel",
                              {{"rank", ""},
                               {"by", ""},
                               {"what", ""},
                               {"count", "count"},
                               {"sum_ns", "ns"},
                               {"of_busy_ratio", "ratio"}},
                              AppendTypes};

}  // namespace fullbore::analyze
