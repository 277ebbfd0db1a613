// Which rank of a training run arrives last, and what that costs the others.
#pragma once

#include <optional>
#include <vector>

#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

struct Lateness {
  const RankView* rank = nullptr;  // null if it cannot be told
  double of_steps = 0;             // the ratio of steps in which it was the last
  double share = 0;                // the ratio of the others' step that it costs
  int64_t steps = 0;
  // Only one step of each rank was recorded: which rank would be last in the next one is not known.
  bool one_step = false;
  int64_t collectives = 0;  // that it was judged by, if there is only one step
};

// Ranks that trained together: their steady states overlap in time. Trainings that ran one after the other
// did not.
std::vector<const RankView*> RanksTogether(const View& view);

// A rank that is late often enough, and by enough, to be named.
struct Straggler {
  Lateness lateness;
  Severity severity = Severity::kWarning;
};
std::optional<Straggler> FindStraggler(const std::vector<const RankView*>& ranks);

// Ranks that arrive as one, as those of a machine do: which of them is the last one is chance.
using RankGroups = std::vector<std::vector<size_t>>;  // of indices into the ranks

// The last rank to arrive is the one that waits least for the others, and it is late by how much longer they
// wait. Measured by the time that each rank waits inside collectives, where that is known (WaitsAreKnown),
// else by its exposed time in collectives. With `groups`, the group of which a rank is the last: `rank` is its first.
Lateness FindLateness(const std::vector<const RankView*>& ranks, const RankGroups& groups = {});

// Nothing for a run on one machine. Where one rank of a machine is late and the others of it wait as everybody else
// does, it is the rank's.
std::optional<Straggler> FindSlowNode(const View& view, const std::vector<const RankView*>& ranks);

// Whether matching collectives were found on all ranks, so that waiting for the last one to arrive can be
// told from transfer.
bool WaitsAreKnown(const std::vector<const RankView*>& ranks);

// How long the rank waits for the others inside collectives, as a ratio of its steps. Hidden waiting costs
// nothing, so at most the exposed communication counts.
double ExposedWaitRatio(const RankView& rank);

}  // namespace fullbore::diagnose
