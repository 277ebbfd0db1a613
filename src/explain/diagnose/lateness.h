// Who comes last among the ranks of one training, and what that costs the others.
#pragma once

#include <optional>
#include <vector>

#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

struct Lateness {
  const RankView* rank = nullptr;  // null where it cannot be told
  double of_steps = 0;             // in how many it was the last
  double share = 0;                // of the others' step that it costs
  int64_t steps = 0;
  // From one step of each rank: who is last in the next one is not known.
  bool one_step = false;
  int64_t collectives = 0;  // behind it, where there is one step only
};

// Ranks that trained together: their steady states overlap in time. Trainings one after the other are no
// ranks.
std::vector<const RankView*> RanksTogether(const View& view);

// A rank that is late often enough, and by enough, to be named.
struct Straggler {
  Lateness lateness;
  Severity severity = Severity::kWarning;
};
std::optional<Straggler> FindStraggler(const std::vector<const RankView*>& ranks);

// The last rank to arrive is the one that waits least for the others; it is late by what the others wait
// more. Where the recordings tell how long each rank waits inside collectives (WaitsAreKnown), by that; else
// by the time in collectives that nothing hides.
Lateness FindLateness(const std::vector<const RankView*>& ranks);

// Whether matching collectives were found on all the ranks: then waiting for the last one to arrive is told
// from transfer.
bool WaitsAreKnown(const std::vector<const RankView*>& ranks);

// What the rank waits inside collectives for the others, as a ratio of its steps. Hidden waiting costs
// nothing: at most the exposed communication counts.
double ExposedWaitRatio(const RankView& rank);

}  // namespace fullbore::diagnose
