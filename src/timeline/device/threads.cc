#include "timeline/device/threads.h"

#include <algorithm>
#include <optional>

namespace fullbore::timeline {
namespace {

// In the traces that the tests read, a thread goes on 1 to 583 us after the one that it waited for.
constexpr int64_t kHandOverNs = 1'000'000;
constexpr int64_t kMinSilenceNs = 20'000;  // a shorter one is Python between two operators

// Only so many threads are compared with each other, those that do most: a file may claim thousands.
constexpr size_t kMaxThreads = 32;

using Spans = std::vector<BusySpan>;

Spans::const_iterator FirstEndingAfter(const Spans& spans, int64_t t) {
  return std::partition_point(spans.begin(), spans.end(),
                              [t](const BusySpan& span) { return span.end_ns <= t; });
}

// What a thread did from its first to its last span in [begin_ns, end_ns], if it was silent at both ends.
std::optional<BusySpan> WorkWithin(const Spans& spans, int64_t begin_ns, int64_t end_ns) {
  const auto first = FirstEndingAfter(spans, begin_ns);
  if (first == spans.end() || first->begin_ns < begin_ns || first->begin_ns >= end_ns) return std::nullopt;
  const auto past =
      std::partition_point(first, spans.end(), [&](const BusySpan& span) { return span.begin_ns < end_ns; });
  if (std::prev(past)->end_ns > end_ns) return std::nullopt;
  return BusySpan{first->begin_ns, std::prev(past)->end_ns};
}

std::vector<uint16_t> BusiestThreads(const std::vector<Spans>& busy) {
  std::vector<uint16_t> threads;
  for (uint16_t i = 0; i < busy.size(); ++i) {
    if (!busy[i].empty()) threads.push_back(i);
  }
  std::stable_sort(threads.begin(), threads.end(),
                   [&](uint16_t a, uint16_t b) { return busy[a].size() > busy[b].size(); });
  if (threads.size() > kMaxThreads) threads.resize(kMaxThreads);
  return threads;
}

}  // namespace

std::vector<Spans> BusySpans(const DeviceTrace& trace) {
  std::vector<Spans> busy(trace.threads.size() + 1);
  const auto add = [&](uint16_t thread, int64_t begin_ns, int64_t end_ns) {
    Spans& spans = busy[thread];
    if (!spans.empty() && begin_ns <= spans.back().end_ns) {
      spans.back().end_ns = std::max(spans.back().end_ns, end_ns);
    } else {
      spans.push_back({begin_ns, end_ns});
    }
  };
  // Calls and spans are each sorted by their begin: merge them.
  size_t c = 0;
  for (size_t s = 0; s <= trace.spans.size(); ++s) {
    const int64_t until = s < trace.spans.size() ? trace.spans[s].begin_ns : INT64_MAX;
    for (; c < trace.calls.size() && trace.calls[c].begin_ns < until; ++c) {
      add(trace.calls[c].thread, trace.calls[c].begin_ns, trace.calls[c].end_ns);
    }
    if (s == trace.spans.size()) break;
    const HostSpan& span = trace.spans[s];
    // These may go around a wait: `loss.backward()` is a Python function of the training thread.
    if (span.kind == SpanKind::kAnnotation || span.kind == SpanKind::kPython) continue;
    add(span.thread, span.begin_ns, span.end_ns);
  }
  return busy;
}

std::vector<HandOver> FindHandOvers(const std::vector<Spans>& busy) {
  std::vector<HandOver> found;
  const std::vector<uint16_t> threads = BusiestThreads(busy);
  for (const uint16_t one : threads) {
    for (size_t i = 1; i < busy[one].size(); ++i) {
      const int64_t begin = busy[one][i - 1].end_ns, end = busy[one][i].begin_ns;
      if (end - begin < kMinSilenceNs) continue;
      int64_t least_ns = INT64_MAX;
      uint16_t best = 0;
      BusySpan work;
      for (const uint16_t other : threads) {
        if (other == one) continue;
        const auto within = WorkWithin(busy[other], begin, end);
        if (!within) continue;
        const int64_t before = within->begin_ns - begin, after = end - within->end_ns;
        if (before > kHandOverNs || after > kHandOverNs || before + after >= least_ns) continue;
        least_ns = before + after;
        best = other;
        work = *within;
      }
      if (least_ns == INT64_MAX) continue;
      const auto first = FirstEndingAfter(busy[best], begin);
      const int64_t since = first == busy[best].begin() ? INT64_MIN : std::prev(first)->end_ns;
      found.push_back({best, one, since, work.begin_ns, begin});
      found.push_back({one, best, begin, end, work.end_ns});
    }
  }
  std::sort(found.begin(), found.end(), [](const HandOver& a, const HandOver& b) {
    return a.waiting != b.waiting ? a.waiting < b.waiting : a.begin_ns < b.begin_ns;
  });
  return found;
}

}  // namespace fullbore::timeline
