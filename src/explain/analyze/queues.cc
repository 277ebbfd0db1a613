// How many operations were launched on a stream and had not begun yet: up at the call, down when the
// operation begins on the device.
#include <algorithm>

#include "explain/analyze/section.h"

namespace fullbore::analyze {
namespace {

// How many launches a stream holds before the next one blocks (CUDA's launch queue; HTA's max_queue_length).
constexpr int64_t kFullQueue = 1024;

struct Change {
  int64_t t_ns;
  int64_t delta;
};

// By time; at equal times the launch first, so that the length is never below 0. An operation that begins
// before its call, by the profiler's clock, counts from its beginning.
std::vector<Change> ChangesOf(const std::vector<const timeline::DeviceOp*>& ops) {
  std::vector<Change> changes;
  for (const timeline::DeviceOp* op : ops) {
    if (op->call == timeline::kNone) continue;
    changes.push_back({std::min(op->launch_begin_ns, op->begin_ns), 1});
    changes.push_back({op->begin_ns, -1});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.t_ns != b.t_ns ? a.t_ns < b.t_ns : a.delta > b.delta;
  });
  return changes;
}

void AppendLength(const RankTrace& rank, Table* table) {
  for (const auto& [stream, ops] : rank.ByStream()) {
    int64_t length = 0;
    for (const Change& change : ChangesOf(ops)) {
      length += change.delta;
      table->Add({rank.rank(), rank.Stream(stream), change.t_ns - rank.begin_ns(), length});
    }
  }
}

void AppendSummary(const RankTrace& rank, Table* table) {
  for (const auto& [stream, ops] : rank.ByStream()) {
    const std::vector<Change> changes = ChangesOf(ops);
    if (changes.empty()) continue;
    int64_t length = 0;
    int64_t longest = 0;
    int64_t empty_ns = 0;
    int64_t full_ns = 0;
    double weighted = 0;
    for (size_t i = 0; i < changes.size(); ++i) {
      length += changes[i].delta;
      longest = std::max(longest, length);
      if (i + 1 == changes.size()) break;
      const int64_t ns = changes[i + 1].t_ns - changes[i].t_ns;
      weighted += static_cast<double>(ns) * static_cast<double>(length);
      if (length == 0) empty_ns += ns;
      if (length >= kFullQueue) full_ns += ns;
    }
    const int64_t span = changes.back().t_ns - changes.front().t_ns;
    const auto ratio = [&](double part) { return span > 0 ? part / static_cast<double>(span) : 0.0; };
    table->Add({rank.rank(), rank.Stream(stream), static_cast<int64_t>(changes.size() / 2), span,
                ratio(weighted), longest, empty_ns, ratio(static_cast<double>(empty_ns)), full_ns,
                ratio(static_cast<double>(full_ns))});
  }
}

}  // namespace

const Section kQueueLength = {"queue-length",
                              "each stream's launch queue over time, one row per change",
                              {{"rank", ""}, {"stream", ""}, {"t_ns", "ns"}, {"length", "count"}},
                              AppendLength};

const Section kQueueSummary = {
    "queue-summary",
    "each stream's launch queue: mean length, how long empty, how long full (1,024)",
    {{"rank", ""},
     {"stream", ""},
     {"launches", "count"},
     {"span_ns", "ns"},
     {"mean_length", "count"},
     {"max_length", "count"},
     {"empty_ns", "ns"},
     {"empty_ratio", "ratio"},
     {"full_ns", "ns"},
     {"full_ratio", "ratio"}},
    AppendSummary};

}  // namespace fullbore::analyze
