#include "timeline/device/host.h"

#include <algorithm>

namespace fullbore::timeline {
namespace {

// Between two operators of a training loop, Python takes 1 to 100 us (measured on the eager PyTorch traces
// that the tests read); ten times the maximum must be something else.
constexpr int64_t kAwayNs = 1'000'000;
// Where only calls are recorded, operators that launch nothing (views, sizes, autograd's bookkeeping) lie
// between two of them, too. Five times as long leaves room for some fifty.
constexpr int64_t kAwayBetweenCallsNs = 5'000'000;
// A call that frees or allocates memory returns in a few us unless it waits for the device.
constexpr int64_t kBlockingMemoryCallNs = 100'000;

bool StateOf(SpanKind kind, HostState* state) {
  switch (kind) {
    case SpanKind::kLoader:
      *state = HostState::kLoader;
      return true;
    case SpanKind::kCheckpoint:
      *state = HostState::kCheckpoint;
      return true;
    case SpanKind::kValidation:
      *state = HostState::kValidation;
      return true;
    case SpanKind::kGarbageCollection:
      *state = HostState::kGarbageCollection;
      return true;
    default:
      return false;
  }
}

bool IsWork(SpanKind kind) {
  return kind == SpanKind::kOp || kind == SpanKind::kBackward || kind == SpanKind::kCollectiveCall;
}

// The first of the sorted, disjoint spans that ends after t.
template <typename T>
auto FirstEndingAfter(const std::vector<T>& spans, int64_t t) {
  return std::partition_point(spans.begin(), spans.end(), [t](const T& span) { return span.end_ns <= t; });
}

}  // namespace

HostActivity::HostActivity(const DeviceTrace& trace)
    : main_thread_(trace.main_thread()), away_ns_(kAwayBetweenCallsNs) {
  threads_.resize(trace.threads.size() + 1);
  FindBlockingCalls(trace);
  FillThreads(trace);
}

// A copy that is asynchronous by name still blocks if its host memory is pageable: the call then returns only
// when the copy is done, which is how it is recognised.
void HostActivity::FindBlockingCalls(const DeviceTrace& trace) {
  blocking_.resize(trace.calls.size());
  for (size_t i = 0; i < trace.calls.size(); ++i) {
    const HostCall& call = trace.calls[i];
    blocking_[i] = call.kind == CallKind::kSync ||
                   (call.kind == CallKind::kMemory && call.end_ns - call.begin_ns >= kBlockingMemoryCallNs);
  }
  for (const DeviceOp& op : trace.ops) {
    if (op.call == kNone || trace.calls[op.call].kind != CallKind::kCopy) continue;
    if (op.launch_end_ns >= op.end_ns) blocking_[op.call] = true;
  }
}

void HostActivity::FillThreads(const DeviceTrace& trace) {
  const auto add_work = [this](uint16_t thread, int64_t begin_ns, int64_t end_ns) {
    auto& working = threads_[thread].working;
    if (!working.empty() && begin_ns <= working.back().end_ns) {
      working.back().end_ns = std::max(working.back().end_ns, end_ns);
    } else {
      working.push_back({begin_ns, end_ns});
    }
  };
  const auto add_mark = [this](uint16_t thread, HostPiece piece) {
    auto& marks = threads_[thread].marks;
    if (!marks.empty()) piece.begin_ns = std::max(piece.begin_ns, marks.back().end_ns);
    if (piece.begin_ns < piece.end_ns) marks.push_back(piece);
  };
  // Calls and spans are each sorted by their begin: merge them.
  size_t c = 0;
  for (size_t s = 0; s <= trace.spans.size(); ++s) {
    const int64_t until = s < trace.spans.size() ? trace.spans[s].begin_ns : INT64_MAX;
    for (; c < trace.calls.size() && trace.calls[c].begin_ns < until; ++c) {
      const HostCall& call = trace.calls[c];
      add_work(call.thread, call.begin_ns, call.end_ns);
      if (blocking_[c]) {
        add_mark(call.thread, {call.begin_ns, call.end_ns, HostState::kSync, static_cast<uint32_t>(c)});
      }
    }
    if (s == trace.spans.size()) break;
    const HostSpan& span = trace.spans[s];
    HostState state{};
    const bool marked = StateOf(span.kind, &state);
    if (marked) add_mark(span.thread, {span.begin_ns, span.end_ns, state, kNone});
    if (IsWork(span.kind)) away_ns_ = kAwayNs;
    if (marked || IsWork(span.kind)) add_work(span.thread, span.begin_ns, span.end_ns);
  }
}

void HostActivity::Look(uint16_t thread, int64_t begin_ns, int64_t end_ns, bool may_be_away,
                        std::vector<HostPiece>* pieces) const {
  const auto& marks = threads_[thread].marks;
  int64_t at = begin_ns;
  for (auto it = FirstEndingAfter(marks, at); it != marks.end() && it->begin_ns < end_ns; ++it) {
    if (it->begin_ns > at) LookOutsideMarks(thread, at, it->begin_ns, may_be_away, pieces);
    at = std::max(at, it->begin_ns);
    const int64_t until = std::min(it->end_ns, end_ns);
    pieces->push_back({at, until, it->state, it->call});
    at = until;
  }
  if (at < end_ns) LookOutsideMarks(thread, at, end_ns, may_be_away, pieces);
}

void HostActivity::LookOutsideMarks(uint16_t thread, int64_t begin_ns, int64_t end_ns, bool may_be_away,
                                    std::vector<HostPiece>* pieces) const {
  const auto& working = threads_[thread].working;
  auto it = FirstEndingAfter(working, begin_ns);
  int64_t at = begin_ns;
  while (at < end_ns) {
    if (it == working.end() || it->begin_ns >= end_ns || it->begin_ns > at) {
      // Outside of everything: the whole duration decides what it is, even if only a part is asked for.
      const bool known = it != working.begin() && it != working.end();
      const bool away = may_be_away && known && it->begin_ns - std::prev(it)->end_ns >= away_ns_;
      const int64_t until = it == working.end() ? end_ns : std::min(it->begin_ns, end_ns);
      if (thread == main_thread_) {
        pieces->push_back({at, until, away ? HostState::kAway : HostState::kWorking, kNone});
      } else {
        Look(main_thread_, at, until, away || !known, pieces);
      }
      at = until;
      continue;
    }
    const int64_t until = std::min(it->end_ns, end_ns);
    pieces->push_back({at, until, HostState::kWorking, kNone});
    at = until;
    ++it;
  }
}

}  // namespace fullbore::timeline
