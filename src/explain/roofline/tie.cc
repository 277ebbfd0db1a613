#include "explain/roofline/tie.h"

#include <algorithm>

#include "explain/roofline/work.h"

namespace fullbore::roofline {

using timeline::DeviceOp;
using timeline::kNone;
using timeline::OperatorCall;
using timeline::OperatorKind;

namespace {

// The kinds of work that must not be counted for an operator and for one inside of it.
uint32_t WorkGroup(OperatorKind kind) {
  if (timeline::IsMatrixWork(kind)) return 1;
  switch (kind) {
    case OperatorKind::kElementwise:
      return 2;
    case OperatorKind::kCopy:
    case OperatorKind::kFill:
      return 4;
    case OperatorKind::kNormalisation:
    case OperatorKind::kNormalisationBackward:
      return 8;
    case OperatorKind::kReduction:
    case OperatorKind::kSoftmax:
    case OperatorKind::kSoftmaxBackward:
      return 16;
    case OperatorKind::kGather:
    case OperatorKind::kScatter:
      return 32;
    case OperatorKind::kOptimizer:
      return 64;
    default:
      return 0;
  }
}

// Operations in the order in which they were launched.
std::vector<uint32_t> ByLaunch(const timeline::DeviceTrace& trace) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops[i].call != kNone) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return trace.ops[a].launch_begin_ns < trace.ops[b].launch_begin_ns;
  });
  return order;
}

class Tying {
 public:
  explicit Tying(const timeline::DeviceTrace& trace)
      : trace_(trace), log_(trace.operators), open_(trace.threads.size() + 1) {
    tied_.calls.resize(log_.calls.size());
    tied_.call_of_op.assign(trace.ops.size(), kNone);
  }

  Tied Run() {
    uint32_t next = 0;
    for (const uint32_t i : ByLaunch(trace_)) {
      const DeviceOp& op = trace_.ops[i];
      for (; next < log_.calls.size() && log_.calls[next].begin_ns <= op.launch_begin_ns; ++next) Open(next);
      tied_.call_of_op[i] = Enclosing(op.launch_thread, op.launch_begin_ns);
    }
    for (; next < log_.calls.size(); ++next) Open(next);
    Settle();
    return std::move(tied_);
  }

 private:
  OperatorKind Kind(uint32_t call) const { return log_.shapes[log_.calls[call].shape].kind; }

  void Open(uint32_t call) {
    auto& open = open_[log_.calls[call].thread];
    while (!open.empty() && log_.calls[open.back()].end_ns() < log_.calls[call].end_ns()) open.pop_back();
    if (!open.empty()) {
      const TiedCall& outer = tied_.calls[open.back()];
      const OperatorKind kind = Kind(open.back());
      tied_.calls[call].parent = open.back();
      tied_.calls[call].in_attention = outer.in_attention || kind == OperatorKind::kAttentionMath;
      tied_.calls[call].in_normalisation = outer.in_normalisation || kind == OperatorKind::kNormalisationMath;
    }
    open.push_back(call);
  }

  uint32_t Enclosing(uint16_t thread, int64_t t_ns) {
    auto& open = open_[thread];
    while (!open.empty() && log_.calls[open.back()].end_ns() < t_ns) open.pop_back();
    return open.empty() ? kNone : open.back();
  }

  // A call comes before those inside of it: from the last to the first, what is inside is known.
  void Settle() {
    std::vector<bool> launched(log_.calls.size());
    for (const uint32_t call : tied_.call_of_op) {
      if (call != kNone) launched[call] = true;
    }
    std::vector<uint8_t> inside(log_.calls.size());
    for (size_t i = log_.calls.size(); i-- > 0;) {
      const OperatorKind kind = Kind(static_cast<uint32_t>(i));
      const auto group = static_cast<uint8_t>(WorkGroup(kind));
      const bool part = kind == OperatorKind::kConvolutionPart;
      tied_.calls[i].covered = !part && (inside[i] & group) != 0;
      const uint32_t parent = tied_.calls[i].parent;
      if (parent == kNone) continue;
      if (part && launched[i] && Kind(parent) == OperatorKind::kConvolutionBackward) {
        const std::string_view name = trace_.names[log_.shapes[log_.calls[i].shape].name];
        tied_.calls[parent].gradients |= name.ends_with("_input") ? kGradInput : kGradWeight;
        continue;  // its kernels are its parent's
      }
      inside[parent] |= static_cast<uint8_t>(inside[i] | (launched[i] ? group : 0));
    }
    for (uint32_t& call : tied_.call_of_op) {
      if (call == kNone || Kind(call) != OperatorKind::kConvolutionPart) continue;
      const uint32_t parent = tied_.calls[call].parent;
      if (parent != kNone && Kind(parent) == OperatorKind::kConvolutionBackward) call = parent;
    }
  }

  const timeline::DeviceTrace& trace_;
  const timeline::OperatorLog& log_;
  std::vector<std::vector<uint32_t>> open_;  // by thread, the innermost last
  Tied tied_;
};

}  // namespace

Tied Tie(const timeline::DeviceTrace& trace) { return Tying(trace).Run(); }

}  // namespace fullbore::roofline
