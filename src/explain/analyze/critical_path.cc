#include "explain/analyze/critical_path.h"

#include <algorithm>
#include <map>

#include "explain/analyze/section.h"

namespace fullbore::analyze {
namespace {

using timeline::DeviceOp;
using timeline::HostState;
using timeline::kNone;

// Consecutive kernels follow one another within this (as in idle_breakdown.cc).
constexpr int64_t kKernelWaitNs = 30'000;

// A thread that records nothing for less than this is between two operators (as in timeline/device_host.cc).
constexpr int64_t kAwayNs = 1'000'000;

class Walk {
 public:
  explicit Walk(const RankTrace& rank) : rank_(rank), trace_(rank.trace()), begin_ns_(rank.begin_ns()) {
    IndexStreams();
    IndexBlockingCalls();
    FindHelper();
  }

  CriticalPath Run() {
    uint32_t op = by_end_.empty() ? kNone : by_end_.back();
    int64_t t = op == kNone ? begin_ns_ : trace_.ops[op].end_ns;
    while (op != kNone) {
      const DeviceOp& now = trace_.ops[op];
      Take(now.begin_ns, &t, BoundOf(now.lane), op);
      op = Before(op, &t);
    }
    path_.to_the_begin = t <= begin_ns_;
    std::reverse(path_.pieces.begin(), path_.pieces.end());
    return std::move(path_);
  }

 private:
  static Bound BoundOf(timeline::Lane lane) {
    const uint32_t bit = timeline::Bit(lane);
    if ((bit & timeline::kComputeLanes) != 0) return Bound::kGpuCompute;
    return (bit & timeline::kCommLane) != 0 ? Bound::kGpuComm : Bound::kGpuCopy;
  }

  void IndexStreams() {
    previous_.assign(trace_.ops.size(), kNone);
    std::map<uint16_t, uint32_t> last;  // on the stream, the one that ended last so far
    for (uint32_t i = 0; i < trace_.ops.size(); ++i) {
      by_end_.push_back(i);
      const auto [place, first] = last.try_emplace(trace_.ops[i].stream, i);
      if (first) continue;
      previous_[i] = place->second;
      if (trace_.ops[i].end_ns >= trace_.ops[place->second].end_ns) place->second = i;
    }
    std::stable_sort(by_end_.begin(), by_end_.end(),
                     [&](uint32_t a, uint32_t b) { return trace_.ops[a].end_ns < trace_.ops[b].end_ns; });
  }

  void IndexBlockingCalls() {
    blocking_.resize(trace_.threads.size() + 1);
    for (uint32_t i = 0; i < trace_.calls.size(); ++i) {
      if (rank_.host().Blocks(i)) blocking_[trace_.calls[i].thread].push_back(i);
    }
  }

  // The thread that makes most calls, apart from the main one: autograd's. While it works, the main thread
  // waits for it, which is not recorded.
  void FindHelper() {
    std::vector<int64_t> calls(trace_.threads.size() + 1);
    for (const timeline::HostCall& call : trace_.calls) ++calls[call.thread];
    calls[trace_.main_thread()] = 0;
    helper_ = static_cast<uint16_t>(std::max_element(calls.begin(), calls.end()) - calls.begin());
  }

  // [begin_ns, *t) is of this bound; *t moves to its begin.
  void Take(int64_t begin_ns, int64_t* t, Bound bound, uint32_t op = kNone) {
    begin_ns = std::max(begin_ns, begin_ns_);
    if (begin_ns >= *t) return;
    if (op == kNone && !path_.pieces.empty() && path_.pieces.back().bound == bound &&
        path_.pieces.back().op == kNone) {
      path_.pieces.back().begin_ns = begin_ns;
    } else {
      path_.pieces.push_back({begin_ns, *t, bound, op});
    }
    *t = begin_ns;
  }

  // The last operation of any stream that ended in (after_ns, until_ns].
  uint32_t LastEnded(int64_t after_ns, int64_t until_ns) const {
    const auto past = std::partition_point(by_end_.begin(), by_end_.end(),
                                           [&](uint32_t i) { return trace_.ops[i].end_ns <= until_ns; });
    if (past == by_end_.begin()) return kNone;
    const uint32_t last = *std::prev(past);
    return trace_.ops[last].end_ns > after_ns ? last : kNone;
  }

  // What the operation that began at *t waited for: the next one on the path, or kNone at its end.
  uint32_t Before(uint32_t index, int64_t* t) {
    const DeviceOp& op = trace_.ops[index];
    const uint32_t previous = previous_[index];
    const int64_t free_ns = previous == kNone ? INT64_MIN : trace_.ops[previous].end_ns;
    const bool known = op.call != kNone;
    const int64_t launched_ns = known ? op.launch_end_ns : INT64_MIN;
    if (known && op.launch_begin_ns >= free_ns && *t - launched_ns < kKernelWaitNs) return FromHost(op, t);
    const int64_t ready_ns = std::max(free_ns, launched_ns);
    if (*t - ready_ns >= kKernelWaitNs) {
      const uint32_t other = LastEnded(ready_ns, *t);
      if (other != kNone && other != index && trace_.ops[other].begin_ns < *t) {
        ++path_.assumed;
        Take(trace_.ops[other].end_ns, t, Bound::kKernelKernel);
        return other;
      }
    }
    if (known && op.launch_begin_ns >= free_ns) return FromHost(op, t);
    if (previous == kNone) return kNone;
    const bool usual = *t - free_ns < kKernelWaitNs;
    Take(free_ns, t, usual ? Bound::kKernelKernel : Bound::kCannotBeTold);
    *t = std::min(*t, free_ns);
    return previous;
  }

  // The host's way to the launch, and on to the operation that it waited for before.
  uint32_t FromHost(const DeviceOp& op, int64_t* t) {
    Take(std::min(op.launch_begin_ns, *t), t, Bound::kLaunch);
    uint16_t thread = op.launch_thread;
    while (*t > begin_ns_) {
      const uint32_t call = LastBlockingCall(thread, *t);
      const int64_t since = call == kNone ? begin_ns_ : trace_.calls[call].end_ns;
      TakeHost(thread, since, t);
      if (call == kNone) break;
      const timeline::HostCall& waited = trace_.calls[call];
      const uint32_t last = LastEnded(waited.begin_ns, waited.end_ns);
      if (last != kNone && trace_.ops[last].begin_ns < *t) {
        Take(trace_.ops[last].end_ns, t, Bound::kSync);
        return last;
      }
      Take(waited.begin_ns, t, Bound::kSync);
      thread = waited.thread;
    }
    return kNone;
  }

  // Of this thread, the main one or its helper: a thread that launches may itself have waited for the others.
  uint32_t LastBlockingCall(uint16_t thread, int64_t t) const {
    uint32_t last = kNone;
    for (const uint16_t one : {thread, trace_.main_thread(), helper_}) {
      const uint32_t call = LastOf(blocking_[one], t);
      if (call != kNone && (last == kNone || trace_.calls[call].end_ns > trace_.calls[last].end_ns))
        last = call;
    }
    return last;
  }

  uint32_t LastOf(const std::vector<uint32_t>& calls, int64_t t) const {
    // By begin; calls of one thread do not overlap, so by end too.
    auto past = std::partition_point(calls.begin(), calls.end(),
                                     [&](uint32_t i) { return trace_.calls[i].begin_ns < t; });
    while (past != calls.begin() && trace_.calls[*std::prev(past)].end_ns > t) --past;
    return past == calls.begin() ? kNone : *std::prev(past);
  }

  void TakeHost(uint16_t thread, int64_t since, int64_t* t) {
    if (since >= *t) return;
    std::vector<timeline::HostPiece> pieces;
    std::vector<timeline::HostPiece> helpers;
    rank_.host().Look(thread, since, *t, &pieces);
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
      if (piece->state != HostState::kAway) {
        Take(piece->begin_ns, t, BoundOf(piece->state));
        continue;
      }
      helpers.clear();
      rank_.host().Look(helper_, piece->begin_ns, piece->end_ns, &helpers);
      for (auto part = helpers.rbegin(); part != helpers.rend(); ++part) {
        const bool between = part->state == HostState::kAway && part->end_ns - part->begin_ns < kAwayNs;
        Take(part->begin_ns, t, between ? Bound::kHost : BoundOf(part->state));
      }
    }
    Take(since, t, Bound::kHostOther);
  }

  static Bound BoundOf(HostState state) {
    return state == HostState::kLoader    ? Bound::kDataLoader
           : state == HostState::kSync    ? Bound::kSync
           : state == HostState::kWorking ? Bound::kHost
                                          : Bound::kHostOther;
  }

  const RankTrace& rank_;
  const timeline::DeviceTrace& trace_;
  const int64_t begin_ns_;
  std::vector<uint32_t> previous_;               // the operation before on the stream
  std::vector<uint32_t> by_end_;                 // operations
  std::vector<std::vector<uint32_t>> blocking_;  // calls, by thread
  uint16_t helper_ = 0;
  CriticalPath path_;
};

void SayHowSure(const RankTrace& rank, const CriticalPath& path, Table* table) {
  const std::string of_rank = "rank " + std::to_string(rank.rank()) + ": ";
  if (rank.trace().streams.size() > 1) {
    table->Note(
        "the trace has no synchronisation events: what a stream waited for on another one can only be "
        "assumed from the times");
  }
  if (path.assumed > 0) {
    table->Note(of_rank + std::to_string(path.assumed) +
                " times the path goes to another stream, because its operation ended last before");
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
  std::map<std::pair<Bound, timeline::NameId>, std::pair<int64_t, int64_t>> sums;
  int64_t all = 0;
  for (const PathPiece& piece : path.pieces) {
    all += piece.end_ns - piece.begin_ns;
    if (piece.op == kNone) continue;
    auto& sum = sums[{piece.bound, rank.trace().ops[piece.op].name}];
    ++sum.first;
    sum.second += piece.end_ns - piece.begin_ns;
  }
  std::vector<std::pair<decltype(sums)::key_type, decltype(sums)::mapped_type>> sorted(sums.begin(),
                                                                                       sums.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.second > b.second.second; });
  for (const auto& [key, sum] : sorted) {
    table->Add({rank.rank(), Name(key.first), rank.Name(key.second), sum.first, sum.second,
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
