#include "timeline/device/graph.h"

#include <algorithm>
#include <map>

#include "timeline/device/ends.h"
#include "timeline/device/events.h"
#include "timeline/device/exchanges.h"
#include "timeline/device/operator_count.h"
#include "timeline/device/phases.h"
#include "timeline/device/places.h"
#include "timeline/device/threads.h"
#include "timeline/device/usual_delays.h"
#include "timeline/graph_draft.h"

namespace fullbore::timeline {
namespace {

using record::Dependency;
using record::StepGraph;
using record::Work;

// A blocking call that waits for nothing returns within this.
constexpr int64_t kUnblockedCallNs = 10'000;
// A wait that follows a copy's call this soon is for that copy: they stand in one operator.
constexpr int64_t kKnownPairNs = 50'000;
// The driver holds about this many launches until a launch blocks (CUDA's queue has 1024 entries).
constexpr size_t kLaunchQueue = 1000;
// A launch that takes so long, and so much longer than most, while the device works, waits for room in that queue.
constexpr int64_t kLongLaunchNs = 50'000;
constexpr int64_t kTimesUsualLaunch = 10;
// The first step is left out if it is so much longer than any other, as in the diagnosis.
constexpr double kSlowStart = 1.1;
// How many operations before the end of a step are searched for the last one of each stream.
constexpr std::ptrdiff_t kLookBack = 1000;

class Builder {
 public:
  Builder(const DeviceTrace& trace, const HostActivity& host, const std::vector<StepBounds>& steps,
          size_t max_ops)
      : trace_(trace), host_(host), phases_(trace) {
    ChooseWindow(steps, max_ops);
  }

  StepGraph Build() {
    busy_ = BusySpans(trace_);
    hand_overs_ = FindHandOvers(busy_);
    host_nodes_.resize(trace_.threads.size() + 1);
    call_node_.assign(trace_.calls.size(), kNone);
    return_node_.assign(trace_.calls.size(), kNone);
    op_node_.assign(trace_.ops.size(), kNone);
    own_op_.assign(trace_.calls.size(), kNone);
    for (uint32_t i = 0; i < trace_.ops.size(); ++i) {
      if (trace_.ops[i].call != kNone) own_op_[trace_.ops[i].call] = i;
    }
    AddOps();
    usual_launch_ns_ = UsualLaunchNs(trace_, own_op_);
    DivideThreads();
    for (size_t thread = 0; thread <= trace_.threads.size(); ++thread)
      AddThread(static_cast<uint16_t>(thread));
    AddHandOvers();
    TieOps();
    TieBlockingCalls();
    AddStepEnds();
    StepGraph graph = std::move(draft_).Finish();
    graph.first_step = first_step_;
    graph.assumed = assumed_;
    graph.operator_start_ns = static_cast<double>(trace_.operator_start_ns);
    const auto loader = trace_.facts.find("loader_processes");
    graph.loads_inline = loader != trace_.facts.end() && loader->second == JsonText("single");
    if (!bounds_.empty())
      graph.recorded_step_ns = static_cast<double>(bounds_.back().end_ns - bounds_.front().begin_ns) /
                               static_cast<double>(bounds_.size());
    return graph;
  }

 private:
  void ChooseWindow(const std::vector<StepBounds>& steps, size_t max_ops) {
    bounds_ = steps;
    if (trace_.ops.empty() || steps.empty()) return;
    if (trace_.ops.size() > max_ops) {
      until_ns_ = trace_.ops[max_ops].begin_ns;
      while (bounds_.size() > 1 && bounds_.back().end_ns > until_ns_) bounds_.pop_back();
      until_ns_ = bounds_.back().end_ns;
    }
    for (; bounds_.size() > 2 && StartsSlowly(bounds_); ++first_step_) bounds_.erase(bounds_.begin());
  }

  // In the first step the device still does what was launched before the recording began, and libraries start.
  // Longer than all others, it says nothing of them: its operations stay in the graph, but do not count.
  static bool StartsSlowly(const std::vector<StepBounds>& steps) {
    int64_t longest_ns = 0;
    for (size_t i = 1; i < steps.size(); ++i)
      longest_ns = std::max(longest_ns, steps[i].end_ns - steps[i].begin_ns);
    const auto first_ns = static_cast<double>(steps[0].end_ns - steps[0].begin_ns);
    return first_ns > kSlowStart * static_cast<double>(longest_ns);
  }

  // ---- the device ----

  void AddOps() {
    const std::vector<bool> activations = CarryingActivations(trace_, phases_);
    for (uint32_t i = 0; i < trace_.ops.size(); ++i) {
      const DeviceOp& op = trace_.ops[i];
      if (op.begin_ns >= until_ns_) break;
      op_node_[i] = draft_.Add(op.begin_ns, op.end_ns, Work::kDevice, op.stream);
      StepGraph::Node& node = draft_.node(op_node_[i]);
      node.lane = op.lane;
      node.bytes = BytesOf(op);
      node.of_gradients = !activations[i];
      node.name = draft_.Name(std::string(trace_.names[op.name]));
      if (op.call != kNone) node.phase = phases_.At(op.launch_thread, op.launch_begin_ns);
    }
    std::copy_if(ends_.ops().begin(), ends_.ops().end(), std::back_inserter(by_launch_),
                 [&](uint32_t i) { return trace_.ops[i].call != kNone; });
    std::stable_sort(by_launch_.begin(), by_launch_.end(), [&](uint32_t a, uint32_t b) {
      return trace_.ops[a].launch_begin_ns < trace_.ops[b].launch_begin_ns;
    });
  }

  int64_t BytesOf(const DeviceOp& op) const {
    if (op.detail == kNone) return -1;
    if (op.lane == Lane::kComm) return trace_.collectives[op.detail].bytes;
    return op.kernel ? -1 : trace_.copy_bytes[op.detail];
  }

  void TieOps() {
    std::map<uint16_t, uint32_t> last;  // of the stream, the operation that ended last so far
    std::map<uint16_t, std::vector<uint32_t>> launched;  // by stream
    for (uint32_t i = 0; i < trace_.ops.size() && op_node_[i] != kNone; ++i) {
      const uint16_t stream = trace_.ops[i].stream;
      const auto [place, first] = last.try_emplace(stream, kNone);
      TieOp(i, place->second);
      if (first || trace_.ops[i].end_ns >= trace_.ops[place->second].end_ns) place->second = i;
      auto& queue = launched[stream];
      if (queue.size() >= kLaunchQueue && trace_.ops[i].call != kNone) {
        const uint32_t before = queue[queue.size() - kLaunchQueue];
        if (trace_.ops[before].begin_ns <= trace_.ops[i].launch_begin_ns)
          draft_.Tie(op_node_[before], call_node_[trace_.ops[i].call], 0, Dependency::kQueue, true);
      }
      queue.push_back(i);
    }
  }

  void TieOp(uint32_t i, uint32_t previous) {
    const DeviceOp& op = trace_.ops[i];
    const uint32_t node = op_node_[i];
    const int64_t begin = op.begin_ns;
    const bool launched = op.call != kNone && op.launch_begin_ns <= begin && call_node_[op.call] != kNone;
    const bool overlaps = previous != kNone && trace_.ops[previous].end_ns > begin;
    int64_t after_stream = 0, after_launch = 0;  // lags
    int64_t stream_ready = INT64_MIN, launch_ready = INT64_MIN;
    if (previous != kNone) {
      const DeviceOp& before = trace_.ops[previous];
      after_stream = overlaps ? begin - before.begin_ns : std::min(begin - before.end_ns, usual_.gap_ns);
      stream_ready = (overlaps ? before.begin_ns : before.end_ns) + after_stream;
    }
    if (launched) {
      after_launch = std::min(begin - op.launch_begin_ns, usual_.least_delay_ns);
      launch_ready = op.launch_begin_ns + after_launch;
    }
    const int64_t event_ready = TieRecordedEvents(i);
    const int64_t ready = std::max({stream_ready, launch_ready, event_ready});
    uint32_t through = node;
    if (ready != INT64_MIN && begin > ready) {
      uint32_t other = ends_.LastElsewhere(op.stream, ready, begin);
      if (other == kNone) other = ends_.MadeRoomFor(op.stream, begin);
      if (launch_ready >= stream_ready && begin - op.launch_end_ns <= kFollowNs) {
        after_launch = begin - op.launch_begin_ns;
      } else if (other != kNone) {
        draft_.Tie(op_node_[other], node, begin - trace_.ops[other].end_ns, Dependency::kAssumed);
        ++assumed_;
      } else if (stream_ready >= launch_ready && begin - trace_.ops[previous].end_ns <= kFollowNs) {
        after_stream = begin - trace_.ops[previous].end_ns;
      } else {
        through = draft_.Add(ready, begin, Work::kUnexplained, op.stream);
        draft_.Tie(through, node, 0, Dependency::kStream);
      }
    }
    if (previous != kNone)
      draft_.Tie(op_node_[previous], through, after_stream, Dependency::kStream, overlaps);
    if (launched) draft_.Tie(call_node_[op.call], through, after_launch, Dependency::kLaunch, true);
  }

  // The operations of other streams that this one waited for, as far as that is recorded. Returns when they
  // had ended; what begins soon after waited for nothing else.
  int64_t TieRecordedEvents(uint32_t i) {
    const DeviceOp& op = trace_.ops[i];
    int64_t ready = INT64_MIN;
    for (const uint32_t other : events_.WaitedForBy(i)) {
      const DeviceOp& before = trace_.ops[other];
      if (before.end_ns > op.begin_ns) continue;
      const int64_t gap = op.begin_ns - before.end_ns;
      const int64_t lag = gap <= kFollowNs ? gap : std::min(gap, usual_.gap_ns);
      draft_.Tie(op_node_[other], op_node_[i], lag, Dependency::kEvent);
      ready = std::max(ready, before.end_ns + lag);
    }
    return ready;
  }

  // ---- the host ----

  // What divides a thread's time into nodes, each by time.
  struct Division {
    std::vector<uint32_t> calls;
    std::vector<BusySpan> silent;  // it only waits for another thread: no node
    std::vector<int64_t> cuts;     // where something else begins to depend on it
    size_t next_silent = 0, next_cut = 0;
  };

  void DivideThreads() {
    divisions_.resize(trace_.threads.size() + 1);
    for (uint32_t c = 0; c < trace_.calls.size() && trace_.calls[c].begin_ns < until_ns_; ++c)
      divisions_[trace_.calls[c].thread].calls.push_back(c);
    for (const HandOver& over : hand_overs_) {
      std::vector<BusySpan>& silent = divisions_[over.waiting].silent;
      const int64_t begin = silent.empty() ? over.begin_ns : std::max(over.begin_ns, silent.back().end_ns);
      if (begin < over.end_ns) silent.push_back({begin, over.end_ns});
      divisions_[over.working].cuts.push_back(over.worked_until_ns);
    }
    std::vector<int64_t>& main_cuts = divisions_[trace_.main_thread()].cuts;
    for (const StepBounds& step : bounds_) main_cuts.insert(main_cuts.end(), {step.begin_ns, step.end_ns});
    for (Division& division : divisions_) std::sort(division.cuts.begin(), division.cuts.end());
  }

  void AddThread(uint16_t thread) {
    if (busy_[thread].empty()) return;
    at_ns_ = busy_[thread].front().begin_ns;
    last_node_ = copied_ = kNone;
    for (const uint32_t c : divisions_[thread].calls) {
      if (trace_.calls[c].begin_ns < at_ns_) continue;  // nested calls belong to the outermost
      AddUntil(thread, trace_.calls[c].begin_ns);
      AddCall(thread, c);
    }
    AddUntil(thread, std::min(busy_[thread].back().end_ns, until_ns_));
  }

  void AddUntil(uint16_t thread, int64_t t) {
    Division& by = divisions_[thread];
    while (at_ns_ < t) {
      while (by.next_cut < by.cuts.size() && by.cuts[by.next_cut] <= at_ns_) ++by.next_cut;
      while (by.next_silent < by.silent.size() && by.silent[by.next_silent].end_ns <= at_ns_)
        ++by.next_silent;
      const int64_t until = by.next_cut < by.cuts.size() ? std::min(t, by.cuts[by.next_cut]) : t;
      if (by.next_silent == by.silent.size()) {
        AddHostWork(thread, until);
      } else if (const BusySpan& silent = by.silent[by.next_silent]; silent.begin_ns <= at_ns_) {
        at_ns_ = std::min(until, silent.end_ns);
      } else {
        AddHostWork(thread, std::min(until, silent.begin_ns));
      }
    }
  }

  void AddHostWork(uint16_t thread, int64_t until_ns) {
    pieces_.clear();
    if (thread == trace_.main_thread()) {
      host_.Look(thread, at_ns_, until_ns, &pieces_);
    } else {
      pieces_.push_back({at_ns_, until_ns, HostState::kWorking, kNone});
    }
    for (const HostPiece& piece : pieces_) {
      const uint32_t node = draft_.Add(piece.begin_ns, piece.end_ns, WorkOf(piece.state), thread);
      draft_.node(node).events = operators_.In(thread, piece.begin_ns, piece.end_ns);
      Append(thread, node);
    }
    at_ns_ = until_ns;
  }

  static Work WorkOf(HostState state) {
    switch (state) {
      case HostState::kLoader:
        return Work::kLoader;
      case HostState::kCheckpoint:
        return Work::kCheckpoint;
      case HostState::kValidation:
        return Work::kValidation;
      case HostState::kGarbageCollection:
        return Work::kGarbageCollection;
      case HostState::kAway:
        return Work::kAway;
      case HostState::kSync:
      case HostState::kWorking:
        return Work::kHost;
    }
    return Work::kHost;
  }

  void AddCall(uint16_t thread, uint32_t c) {
    const HostCall& call = trace_.calls[c];
    const bool blocks = host_.Blocks(c), for_room = !blocks && WaitsForRoom(c);
    const int64_t usual_ns = for_room ? usual_launch_ns_ : blocks ? kUnblockedCallNs : INT64_MAX;
    const int64_t own_end = call.end_ns - call.begin_ns > usual_ns ? call.begin_ns + usual_ns : call.end_ns;
    call_node_[c] = draft_.Add(call.begin_ns, own_end, blocks ? Work::kBlockingCall : Work::kLaunch, thread);
    draft_.node(call_node_[c]).of_allocator = call.kind == CallKind::kMemory;
    draft_.node(call_node_[c]).events = 1;
    Append(thread, call_node_[c]);
    // A copy and the wait for it are often two calls: cudaMemcpyAsync, cudaStreamSynchronize.
    const uint32_t own = own_op_[c] != kNone                               ? own_op_[c]
                         : call.begin_ns - copied_until_ns_ < kKnownPairNs ? copied_
                                                                           : kNone;
    if (own_op_[c] != kNone) {
      const bool copy = (Bit(trace_.ops[own].lane) & kCopyLanes) != 0;
      copied_ = copy ? own : kNone;
      copied_until_ns_ = call.end_ns;
    }
    // Also one that found nothing to wait for: with another schedule, it might.
    if (own_end < call.end_ns || (blocks && (own_op_[c] != kNone || WaitsForAll(call)))) {
      return_node_[c] = draft_.Add(call.end_ns, call.end_ns, for_room ? Work::kRoom : Work::kReturn, thread);
      if (own != kNone) draft_.node(return_node_[c]).lane = trace_.ops[own].lane;
      draft_.node(return_node_[c]).of_allocator = call.kind == CallKind::kMemory;
      const std::string place = places_.Of(call);
      draft_.node(return_node_[c]).name =
          draft_.Name(place.empty() ? std::string(trace_.names[call.name]) : place);
      Append(thread, return_node_[c]);
    }
    at_ns_ = call.end_ns;
  }

  bool WaitsForAll(const HostCall& call) const {
    return call.kind == CallKind::kSync && WaitsForEverything(trace_.names[call.name]);
  }

  // Of a queue that is full, each launch returns when an operation has ended and left its place.
  bool WaitsForRoom(uint32_t c) const {
    const HostCall& call = trace_.calls[c];
    const int64_t long_ns = std::max(kLongLaunchNs, kTimesUsualLaunch * usual_launch_ns_);
    return own_op_[c] != kNone && trace_.ops[own_op_[c]].kernel && call.end_ns - call.begin_ns > long_ns &&
           trace_.ops[own_op_[c]].end_ns > call.end_ns && ends_.Last(call.begin_ns, call.end_ns) != kNone;
  }

  void Append(uint16_t thread, uint32_t node) {
    draft_.node(node).phase = phases_.At(thread, draft_.begin_ns(node));
    draft_.Tie(last_node_, node, 0, Dependency::kThread);
    last_node_ = node;
    host_nodes_[thread].push_back(node);
  }

  // The last node of the thread that ended at `t` or before.
  uint32_t NodeBefore(uint16_t thread, int64_t t) const {
    const auto& nodes = host_nodes_[thread];
    const auto past =
        std::partition_point(nodes.begin(), nodes.end(), [&](uint32_t n) { return draft_.end_ns(n) <= t; });
    return past == nodes.begin() ? kNone : *std::prev(past);
  }
  uint32_t NodeFrom(uint16_t thread, int64_t t) const {
    const auto& nodes = host_nodes_[thread];
    const auto first =
        std::partition_point(nodes.begin(), nodes.end(), [&](uint32_t n) { return draft_.begin_ns(n) < t; });
    return first == nodes.end() ? kNone : *first;
  }

  void AddHandOvers() {
    for (const HandOver& over : hand_overs_) {
      const uint32_t from = NodeBefore(over.working, over.worked_until_ns);
      const uint32_t to = NodeFrom(over.waiting, over.end_ns);
      if (from == kNone || to == kNone) continue;
      draft_.Tie(from, to, draft_.begin_ns(to) - draft_.end_ns(from), Dependency::kHandOver);
    }
  }

  // A blocking call returns soon after the last operation that it waited for: its own, for a copy.
  void TieBlockingCalls() {
    for (uint32_t c = 0; c < trace_.calls.size(); ++c) {
      if (return_node_[c] == kNone) continue;
      const HostCall& call = trace_.calls[c];
      uint32_t op = own_op_[c];
      if (op == kNone) op = events_.WaitedForBy(call);
      if (op == kNone || trace_.ops[op].end_ns > call.end_ns) op = ends_.Last(call.begin_ns, call.end_ns);
      const bool waited = draft_.begin_ns(return_node_[c]) > draft_.end_ns(call_node_[c]);
      if (op == kNone && !waited) {
        TieToLastLaunched(c);
      } else if (op != kNone && op_node_[op] != kNone) {
        const bool for_room = draft_.node(return_node_[c]).work == Work::kRoom;
        draft_.Tie(op_node_[op], return_node_[c], call.end_ns - trace_.ops[op].end_ns,
                   for_room ? Dependency::kQueue : Dependency::kSync);
      } else {
        draft_.Move(return_node_[c], draft_.end_ns(call_node_[c]), call.end_ns);
        draft_.node(return_node_[c]).work = Work::kUnexplained;
      }
    }
  }

  // The call came when all was done.
  void TieToLastLaunched(uint32_t c) {
    const HostCall& call = trace_.calls[c];
    const auto past = std::partition_point(by_launch_.begin(), by_launch_.end(), [&](uint32_t i) {
      return trace_.ops[i].launch_begin_ns < call.begin_ns;
    });
    if (past == by_launch_.begin()) return;
    const uint32_t op = *std::prev(past);
    if (op_node_[op] == kNone || trace_.ops[op].end_ns > call.end_ns) return;
    draft_.Tie(op_node_[op], return_node_[c], std::min(call.end_ns - trace_.ops[op].end_ns, kUnblockedCallNs),
               Dependency::kSync);
  }

  // ---- steps ----

  void AddStepEnds() {
    if (bounds_.empty()) return;
    AddStepEnd(bounds_.front().begin_ns);
    for (const StepBounds& step : bounds_) AddStepEnd(step.end_ns);
  }

  // A step ends when its last operation has, or the host comes to its mark later; but not before any
  // operation that had ended until then.
  void AddStepEnd(int64_t t) {
    const uint32_t end = draft_.Add(t, t, Work::kStepEnd, 0);
    const auto past = ends_.After(t);
    std::vector<bool> seen(trace_.streams.size() + 1);
    size_t left = trace_.streams.size();
    for (auto op = past; op != ends_.ops().begin() && left > 0 && past - op < kLookBack;) {
      const DeviceOp& ended = trace_.ops[*--op];
      if (seen[ended.stream]) continue;
      seen[ended.stream] = true;
      --left;
      draft_.Tie(op_node_[*op], end, 0, Dependency::kStream);
    }
    if (past != ends_.ops().begin() && trace_.ops[*std::prev(past)].end_ns == t) return;
    const auto first = std::partition_point(trace_.ops.begin(), trace_.ops.end(),
                                            [&](const DeviceOp& op) { return op.begin_ns < t; });
    if (first != trace_.ops.end() && first->begin_ns == t)
      return draft_.Tie(op_node_[static_cast<size_t>(first - trace_.ops.begin())], end, 0,
                        Dependency::kStream, true);
    const uint32_t before = NodeBefore(trace_.main_thread(), t);
    if (before != kNone) draft_.Tie(before, end, t - draft_.end_ns(before), Dependency::kThread);
  }

  const DeviceTrace& trace_;
  const HostActivity& host_;
  const Phases phases_;
  const Places places_{trace_};
  const DeviceEvents events_{trace_};
  std::vector<StepBounds> bounds_;
  int64_t first_step_ = 0;
  int64_t until_ns_ = INT64_MAX;
  std::vector<std::vector<BusySpan>> busy_;  // by thread
  std::vector<HandOver> hand_overs_;
  std::vector<Division> divisions_;  // by thread
  const OperatorCount operators_{trace_};
  const UsualDelays usual_{UsualDelaysOf(trace_)};
  int64_t usual_launch_ns_ = 0;  // the host's call
  const OpsByEnd ends_{trace_};
  std::vector<uint32_t> by_launch_;  // operations
  GraphDraft draft_;
  int64_t assumed_ = 0;
  std::vector<uint32_t> call_node_, return_node_, op_node_;
  std::vector<uint32_t> own_op_;                   // by call: the operation that it launched
  std::vector<std::vector<uint32_t>> host_nodes_;  // by thread
  std::vector<HostPiece> pieces_;
  int64_t at_ns_ = 0;
  uint32_t last_node_ = kNone;
  uint32_t copied_ = kNone;  // the copy that the thread's last call made
  int64_t copied_until_ns_ = 0;
};

}  // namespace

StepGraph GraphOf(const DeviceTrace& trace, const HostActivity& host, const std::vector<StepBounds>& steps,
                  size_t max_ops) {
  return Builder(trace, host, steps, max_ops).Build();
}

}  // namespace fullbore::timeline
