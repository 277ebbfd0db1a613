#include "explain/analyze/critical_path.h"

#include <algorithm>
#include <map>

#include "explain/analyze/section.h"
#include "explain/replay/simulate.h"
#include "timeline/device/graph.h"

namespace fullbore::analyze {
namespace {

using record::Dependency;
using record::StepGraph;
using record::Work;

Bound BoundOf(const StepGraph::Node& node) {
  switch (node.work) {
    case Work::kDevice: {
      const uint32_t bit = record::Bit(node.lane);
      if ((bit & record::kComputeLanes) != 0) return Bound::kGpuCompute;
      return (bit & record::kCommLane) != 0 ? Bound::kGpuComm : Bound::kGpuCopy;
    }
    case Work::kLoader:
    case Work::kFetch:
      return Bound::kDataLoader;
    case Work::kCheckpoint:
    case Work::kValidation:
    case Work::kGarbageCollection:
    case Work::kAway:
      return Bound::kHostOther;
    case Work::kReturn:
    case Work::kRoom:
      return Bound::kSync;
    case Work::kUnexplained:
      return Bound::kCannotBeTold;
    case Work::kHost:
    case Work::kLaunch:
    case Work::kBlockingCall:
    case Work::kStepEnd:
      return Bound::kHost;
  }
  return Bound::kHost;
}

// What passes between a node and the one that waits for it.
Bound BoundOf(Dependency kind) {
  switch (kind) {
    case Dependency::kStream:
    case Dependency::kEvent:
    case Dependency::kAssumed:
      return Bound::kKernelKernel;
    case Dependency::kLaunch:
    case Dependency::kQueue:
      return Bound::kLaunch;
    case Dependency::kSync:
      return Bound::kSync;
    case Dependency::kLoader:
      return Bound::kDataLoader;
    case Dependency::kThread:
    case Dependency::kHandOver:
      return Bound::kHost;
    case Dependency::kStart:
      return Bound::kCannotBeTold;
  }
  return Bound::kHost;
}

class Walk {
 public:
  explicit Walk(const RankTrace& rank)
      : graph_(timeline::GraphOf(rank.trace(), rank.host(), {}, SIZE_MAX)), begins_(replay::Begins(graph_)) {}

  CriticalPath Run() {
    path_.names = graph_.names;
    path_.assumed = graph_.assumed;
    uint32_t node = LastOnDevice();
    int64_t t = node == timeline::kNone ? 0 : EndOf(node);
    while (node != timeline::kNone) {
      const auto& now = graph_.nodes[node];
      Take(begins_[node], &t, BoundOf(now), now.work == Work::kDevice ? now.name : 0);
      node = Before(node, &t);
    }
    path_.to_the_begin = t <= 0;
    std::reverse(path_.pieces.begin(), path_.pieces.end());
    return std::move(path_);
  }

 private:
  int64_t EndOf(uint32_t node) const { return begins_[node] + graph_.nodes[node].duration_ns; }

  uint32_t LastOnDevice() const {
    uint32_t last = timeline::kNone;
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      if (graph_.nodes[i].work == Work::kDevice && (last == timeline::kNone || EndOf(i) >= EndOf(last)))
        last = i;
    }
    return last;
  }

  // [begin_ns, *t) is of this bound; *t moves to its begin. Times of the path are those of the trace.
  void Take(int64_t begin_ns, int64_t* t, Bound bound, uint32_t name = 0) {
    if (begin_ns >= *t) return;
    if (name == 0 && !path_.pieces.empty() && path_.pieces.back().bound == bound &&
        path_.pieces.back().name == 0) {
      path_.pieces.back().begin_ns = begin_ns + graph_.begin_ns;
    } else {
      path_.pieces.push_back({begin_ns + graph_.begin_ns, *t + graph_.begin_ns, bound, name});
    }
    *t = begin_ns;
  }

  // The node that this one waited for longest, and what passed in between. From the begin of a call, the path goes
  // on with what the call waited for.
  uint32_t Before(uint32_t node, int64_t* t) {
    while (true) {
      const StepGraph::Edge* last = nullptr;
      int64_t last_ns = INT64_MIN;
      for (uint32_t e = graph_.first_edge[node]; e < graph_.first_edge[node + 1]; ++e) {
        const StepGraph::Edge& edge = graph_.edges[e];
        const int64_t ns = (edge.from_begin ? begins_[edge.from] : EndOf(edge.from)) + edge.lag_ns;
        if (ns > last_ns) {
          last = &edge;
          last_ns = ns;
        }
      }
      if (last == nullptr) return timeline::kNone;
      if (!last->from_begin) {
        Take(std::min(EndOf(last->from), *t), t, BoundOf(last->kind));
        return last->from;
      }
      Take(begins_[last->from], t, BoundOf(last->kind));
      node = last->from;
    }
  }

  const StepGraph graph_;
  const std::vector<int64_t> begins_;
  CriticalPath path_;
};

void SayHowSure(const RankTrace& rank, const CriticalPath& path, Table* table) {
  const std::string of_rank = "rank " + std::to_string(rank.rank()) + ": ";
  if (rank.trace().streams.size() > 1 && rank.trace().waits.empty()) {
    table->Note(
        "the trace has no synchronisation events: what a stream waited for on another one can only be "
        "assumed from the times");
  }
  if (path.assumed > 0) {
    table->Note(of_rank + std::to_string(path.assumed) +
                " times an operation waits for another stream, because one of it ended, or was about to, "
                "just before");
  }
  if (!path.to_the_begin)
    table->Note(of_rank + "the path ends at an operation whose launch is not in the trace");
}

void AppendPath(const RankTrace& rank, Table* table) {
  if (!rank.trace().has_device_activity()) return;
  const CriticalPath path = FindCriticalPath(rank);
  struct Sum {
    int64_t ns = 0, pieces = 0, longest_ns = 0, longest_at_ns = 0;
  };
  std::map<Bound, Sum> sums;
  int64_t all = 0;
  for (const PathPiece& piece : path.pieces) {
    const int64_t ns = piece.end_ns - piece.begin_ns;
    Sum& sum = sums[piece.bound];
    sum.ns += ns;
    ++sum.pieces;
    if (ns > sum.longest_ns) sum.longest_at_ns = piece.begin_ns - rank.begin_ns();
    sum.longest_ns = std::max(sum.longest_ns, ns);
    all += ns;
  }
  for (const auto& [bound, sum] : sums) {
    table->Add({rank.rank(), Name(bound), sum.pieces, sum.ns,
                static_cast<double>(sum.ns) / static_cast<double>(all), sum.longest_ns, sum.longest_at_ns});
  }
  SayHowSure(rank, path, table);
}

void AppendItems(const RankTrace& rank, Table* table) {
  if (!rank.trace().has_device_activity()) return;
  const CriticalPath path = FindCriticalPath(rank);
  std::map<std::pair<Bound, uint32_t>, std::pair<int64_t, int64_t>> sums;
  int64_t all = 0;
  for (const PathPiece& piece : path.pieces) {
    all += piece.end_ns - piece.begin_ns;
    if (piece.name == 0) continue;
    auto& sum = sums[{piece.bound, piece.name}];
    ++sum.first;
    sum.second += piece.end_ns - piece.begin_ns;
  }
  std::vector<std::pair<decltype(sums)::key_type, decltype(sums)::mapped_type>> sorted(sums.begin(),
                                                                                       sums.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.second > b.second.second; });
  for (const auto& [key, sum] : sorted) {
    table->Add({rank.rank(), Name(key.first), path.names[key.second], sum.first, sum.second,
                static_cast<double>(sum.second) / static_cast<double>(all)});
  }
  SayHowSure(rank, path, table);
}

}  // namespace

const char* Name(Bound bound) {
  constexpr const char* kNames[kBoundCount] = {
      "gpu_compute", "gpu_comm",    "gpu_copy", "kernel_kernel", "kernel_launch",
      "host",        "data_loader", "sync",     "host_other",    "cannot_be_told"};
  return kNames[static_cast<size_t>(bound)];
}

CriticalPath FindCriticalPath(const RankTrace& rank) { return Walk(rank).Run(); }

const Section kCriticalPath = {"critical-path",
                               "what the length of the run depends on, by what binds it",
                               {{"rank", ""},
                                {"bound_by", ""},
                                {"pieces", "count"},
                                {"sum_ns", "ns"},
                                {"of_path_ratio", "ratio"},
                                {"longest_ns", "ns"},
                                {"longest_at_ns", "ns"}},
                               AppendPath};

const Section kCriticalPathItems = {"critical-path-kernels",
                                    "the kernels and copies on the critical path, by their time on it",
                                    {{"rank", ""},
                                     {"bound_by", ""},
                                     {"name", ""},
                                     {"count", "count"},
                                     {"sum_ns", "ns"},
                                     {"of_path_ratio", "ratio"}},
                                    AppendItems};

}  // namespace fullbore::analyze
