// One thing that could be done to a training, as what it does to the graph of its steps.
//
//   for (const Change* change : AllChanges())
//     if (!change->WhyNot(graph)) { StepGraph after = graph; change->Apply(Outlook::kExpected, after); ... }
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/step_graph.h"

namespace fullbore::replay {

// How favourable the assumptions are that a change cannot do without.
enum class Outlook : uint8_t { kCautious, kExpected, kHopeful };

// What a change costs besides the work of making it, from the cheapest on.
enum class Cost : uint8_t { kNothing, kCode, kMemory, kNumerics };
std::string_view Name(Cost cost);  // "nothing", "code", "memory", "numerics"

class Change {
 public:
  virtual ~Change() = default;
  virtual std::string_view id() const = 0;    // as in --what-if: "no-sync"
  virtual std::string_view does() const = 0;  // "the host never waits for the device in the middle of a step"
  virtual std::string_view assumes() const = 0;
  virtual Cost cost() const = 0;
  // Whether a rank on which it can be made gains from it where others cannot.
  virtual bool helps_others() const { return true; }
  // Whether at its most hopeful it takes away altogether what it is about: more than that it is not expected to gain.
  virtual bool removes() const { return false; }
  // Whether it changes each class of kernels in its own way, so that reports show them.
  virtual bool shows_classes() const { return false; }

  // Why it cannot be made here, or would change nothing; nothing if it can.
  virtual std::optional<std::string> WhyNot(const record::StepGraph& graph) const = 0;
  // Changes the graph, and returns the least time in ns that a step takes afterwards, whatever the graph
  // says: 0 unless something works beside the steps that the graph does not contain (a link, workers).
  virtual double Apply(Outlook outlook, record::StepGraph& graph) const = 0;
};

// In the order in which people would try them.
const std::vector<const Change*>& AllChanges();
// Also those with a number, "workers=4", "links=4", "accumulate=8", "bucket=25", and "device=MI300X"; nullptr if there
// is none.
const Change* ChangeNamed(std::string_view id);
inline constexpr std::string_view kDevicePrefix = "device=";
// Whether an optimizer of this class takes `fused=True` on a device.
bool HasFusedForm(std::string_view optimizer);
std::string KnownDevices();  // with commas between them

// What the edges of a graph are changed to where a dependency is no more.
inline constexpr int64_t kNoLag = INT64_MIN / 4;
inline void Drop(record::StepGraph::Edge& edge) { edge.lag_ns = kNoLag; }

// Of each node, the step that it is in: 0 before the first step begins, then 1, 2, ...
std::vector<uint32_t> StepOfNodes(const record::StepGraph& graph);

// The sum of the durations of those nodes for which `is`, per step; of the steps, not of what precedes them.
template <typename Predicate>
double PerStepNs(const record::StepGraph& graph, Predicate is) {
  if (graph.step_ends.size() < 2) return 0;
  int64_t sum = 0;
  for (uint32_t i = graph.step_ends.front(); i < graph.step_ends.back(); ++i) {
    if (is(graph.nodes[i])) sum += graph.nodes[i].duration_ns;
  }
  return static_cast<double>(sum) / static_cast<double>(graph.step_ends.size() - 1);
}

}  // namespace fullbore::replay
