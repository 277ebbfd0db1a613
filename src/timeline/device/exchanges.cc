#include "timeline/device/exchanges.h"

#include <algorithm>
#include <map>

#include "timeline/device/tables.h"

namespace fullbore::timeline {

using record::Phase;

namespace {

// Of a group's reductions, in bytes: a tensor parallel layer sends as much forward as backward, a loss that is averaged
// over ranks next to nothing.
constexpr double kOfForward = 0.25;

struct Group {
  double forward = 0, all = 0;
};

// Whether an operation stands in the forward pass: behind the optimizer, before the first of the backward pass. What a
// training thread launches between the backward pass and the optimizer are gradients.
class Passes {
 public:
  bool InForward(Phase phase) {
    if (phase == Phase::kOptimizer) backward_ = false;
    if (phase == Phase::kBackward || phase == Phase::kRecomputation) backward_ = any_ = true;
    return phase == Phase::kForward && !backward_;
  }
  bool any() const { return any_; }

 private:
  bool backward_ = false, any_ = false;
};

double WeightOf(const Collective& about) { return about.bytes > 0 ? static_cast<double>(about.bytes) : 1; }

}  // namespace

std::vector<bool> CarryingActivations(const DeviceTrace& trace, const Phases& phases) {
  std::vector<bool> activations(trace.ops.size());
  std::map<NameId, Group> groups;
  std::vector<uint32_t> of_groups;
  Passes passes;
  const auto about = [&](const DeviceOp& op) {
    return op.detail == kNone ? Collective{} : trace.collectives[op.detail];
  };
  for (uint32_t i = 0; i < trace.ops.size(); ++i) {
    const DeviceOp& op = trace.ops[i];
    const Phase phase = op.call == kNone ? Phase::kForward : phases.At(op.launch_thread, op.launch_begin_ns);
    const bool forward = passes.InForward(phase);
    if (op.lane != Lane::kComm) continue;
    const std::string called = CollectiveKind(trace, op);
    const std::string_view kind = CollectiveOfKernel(called);
    const bool between_two = kind == "send_recv" || called == "send" || called == "recv";
    activations[i] = !trace.noticed.engine.empty() || kind == "all_to_all" || between_two ||
                     !IsOfCollectiveLibrary(trace.names[op.name]);
    const bool reduces = kind == "all_reduce" || kind == "reduce_scatter";
    if (!reduces && kind != "all_gather") continue;
    of_groups.push_back(i);
    if (!reduces) continue;  // in the forward pass, weights are gathered, too
    Group& group = groups[about(op).group];
    group.all += WeightOf(about(op));
    if (forward && op.call != kNone) group.forward += WeightOf(about(op));
  }
  if (!passes.any()) return activations;
  for (const auto& [name, group] : groups) {
    if (group.forward < kOfForward * group.all) continue;
    for (const uint32_t i : of_groups) {
      if (about(trace.ops[i]).group == name) activations[i] = true;
    }
  }
  return activations;
}

}  // namespace fullbore::timeline
