#include "timeline/device/trace.h"

#include <algorithm>
#include <bit>

#include "timeline/device/clock.h"
#include "timeline/device/mend.h"
#include "timeline/device/noticed.h"

namespace fullbore::timeline {
namespace {

template <typename T>
void SortByBegin(PodVector<T>* events) {
  const auto by_begin = [](const T& a, const T& b) { return a.begin_ns < b.begin_ns; };
  if (!std::is_sorted(events->begin(), events->end(), by_begin)) {
    std::sort(events->begin(), events->end(), by_begin);
  }
}

// Correlation id -> index of the call, with open addressing: a node-based map would cost
// more than the calls themselves.
class CallIndex {
 public:
  explicit CallIndex(const PodVector<HostCall>& calls)
      : calls_(calls), slots_(std::bit_ceil(calls.size() * 2 + 1), kNone) {
    for (uint32_t i = 0; i < calls.size(); ++i) {
      if (calls[i].correlation == 0) continue;
      size_t slot = Slot(calls[i].correlation);
      while (slots_[slot] != kNone && calls_[slots_[slot]].correlation != calls[i].correlation)
        slot = Next(slot);
      if (slots_[slot] != kNone) {
        const CallKind kind = calls[slots_[slot]].kind;
        repeat_ = repeat_ || (kind == CallKind::kLaunch && calls[i].kind == kind);
      }
      slots_[slot] = i;
    }
  }
  uint32_t Find(uint64_t correlation) const {
    size_t slot = Slot(correlation);
    while (slots_[slot] != kNone && calls_[slots_[slot]].correlation != correlation) slot = Next(slot);
    return slots_[slot];
  }
  bool repeat() const { return repeat_; }  // calls that launch have the same id

 private:
  // The product's upper half: ids may be multiples of 2^32, which say nothing in their lower one.
  size_t Slot(uint64_t key) const { return ((key * 0x9e3779b97f4a7c15ULL) >> 32) & (slots_.size() - 1); }
  size_t Next(size_t slot) const { return (slot + 1) & (slots_.size() - 1); }

  const PodVector<HostCall>& calls_;
  std::vector<uint32_t> slots_;
  bool repeat_ = false;
};

// Of nested calls ("nccl:all_reduce" around c10d's own record) each knows a part.
void Complete(const Collective& from, Collective* to) {
  if (to->kind == 0) to->kind = from.kind;
  if (to->group == 0) to->group = from.group;
  if (to->bytes < 0) to->bytes = from.bytes;
  if (to->group_size < 0) to->group_size = from.group_size;
  if (to->peer < 0) to->peer = from.peer;
}

}  // namespace

NameTable::NameTable() { Find(""); }

NameId NameTable::Find(std::string_view text) {
  if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
  if (texts_.size() == kMaxNames - 1) text = "(further names)";
  const auto [place, added] = ids_.try_emplace(std::string(text), static_cast<NameId>(texts_.size()));
  if (added) texts_.push_back(&place->first);
  return place->second;
}

std::string JsonText(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + "\"";
}

void DeviceTrace::Finish() {
  Sort();
  LeaveOutImpossibleTimes(this);
  LeaveOutRepeatedMarks(this);
  TieLaunches();
  CutCoveringOperations(this);
  if (AlignDeviceClock(this)) SortByBegin(&ops);
  TieCollectives();
  FindMainThread();
  Notice(this);
}

void DeviceTrace::Sort() {
  SortByBegin(&ops);
  SortByBegin(&calls);
  SortByBegin(&spans);
  SortByBegin(&recomputations);
  operators.Sort();
  std::stable_sort(steps.begin(), steps.end(),
                   [](const StepMark& a, const StepMark& b) { return a.begin_ns < b.begin_ns; });
  std::stable_sort(waits.begin(), waits.end(),
                   [](const WaitRecord& a, const WaitRecord& b) { return a.begin_ns < b.begin_ns; });
  std::stable_sort(event_calls.begin(), event_calls.end(),
                   [](const EventCall& a, const EventCall& b) { return a.correlation < b.correlation; });
}

void DeviceTrace::TieLaunches() {
  const CallIndex index(calls);
  ids_repeat_ = index.repeat();
  for (DeviceOp& op : ops) {
    if (op.correlation == 0) continue;
    op.call = index.Find(op.correlation);
    if (op.call == kNone) continue;
    HostCall& call = calls[op.call];
    if (op.kernel && call.kind == CallKind::kOther) call.kind = CallKind::kLaunch;  // whatever it is called
    op.launch_begin_ns = call.begin_ns;
    op.launch_end_ns = call.end_ns;
    op.launch_thread = call.thread;
    if (call.blocks != 0) op.blocks = call.blocks;
  }
}

void DeviceTrace::TieCollectives() {
  std::sort(collective_calls.begin(), collective_calls.end(),
            [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
  for (DeviceOp& op : ops) {
    if (op.lane != Lane::kComm || op.detail != kNone || op.call == kNone) continue;
    auto it = std::upper_bound(collective_calls.begin(), collective_calls.end(), op.launch_begin_ns,
                               [](int64_t t, const auto& call) { return t < call.begin_ns; });
    constexpr int kDepth = 8;  // calls of other threads, and calls nested in the one looked for, lie between
    for (int i = 0; i < kDepth && it != collective_calls.begin(); ++i) {
      --it;
      if (it->thread != op.launch_thread || it->end_ns < op.launch_begin_ns) continue;
      if (op.detail == kNone) {
        op.detail = static_cast<uint32_t>(collectives.size());
        collectives.push_back({});
      }
      Complete(it->collective, &collectives[op.detail]);
    }
  }
}

void DeviceTrace::FindMainThread() {
  if (!steps.empty()) {
    main_thread_ = steps.front().thread;
    return;
  }
  std::vector<int64_t> weight(threads.size() + 1);
  for (const HostSpan& span : spans) {
    if (span.kind == SpanKind::kLoader || span.kind == SpanKind::kOptimizer) weight[span.thread] += 1'000'000;
    ++weight[span.thread];
  }
  for (const HostCall& call : calls) ++weight[call.thread];
  // Linux numbers the thread that a process begins with like the process, and Python runs the script in it.
  const std::string number = std::to_string(pid), with_process = number + "/" + number;
  for (size_t i = 0; i < threads.size(); ++i) {
    if (weight[i] > 0 && (threads[i] == number || threads[i] == with_process)) weight[i] += 500'000;
  }
  main_thread_ = static_cast<uint16_t>(std::max_element(weight.begin(), weight.end()) - weight.begin());
}

}  // namespace fullbore::timeline
