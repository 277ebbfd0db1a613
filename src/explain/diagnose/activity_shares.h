// What the time of host_other without a name of its own consists of, from the samples of the line sampler.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/view.h"
#include "record/activity.h"

namespace fullbore::diagnose {

// A ratio that was sampled, with its 95 % interval (Wilson's, which also holds for few samples).
struct Sampled {
  double ratio = 0, low = 0, high = 1;
};
Sampled SampledRatio(int64_t hits, int64_t samples);

// One activity's part of the step.
struct ActivityShare {
  record::Activity activity = record::Activity::kUnknown;
  int64_t samples = 0, slow_samples = 0;  // those in slow steps among them
  Sampled of_step;
  std::vector<Place> where;  // hottest first; each share is of this activity's own time
  std::string library;       // that runs the loop at the first place; empty where that is the user's own line
};

// Largest first. They sum to the ratio of host_other that has no other name. Empty without samples there.
// Samples of which it is not known what they do count for what the others of their line do; and around lines that
// log, plot or compute metrics, for that: who does it every N steps does not prepare it in between.
std::vector<ActivityShare> ActivitySharesOf(const RankView& rank);

// Waiting for another thread or process.
constexpr bool IsWaitForOthers(record::Activity activity) {
  return activity == record::Activity::kQueue || activity == record::Activity::kLock ||
         activity == record::Activity::kFuture;
}

// Whether the loop plays: it samples actions or steps an environment, and its model passes without gradients.
bool PlaysInAnEnvironment(const RankView& rank);

// The share of the step in which such a loop waits to receive something: its environments run in other processes, and
// answer. 0 in a loop that a DataLoader feeds, or that does not play.
double WaitForEnvironments(const RankView& rank);

}  // namespace fullbore::diagnose
