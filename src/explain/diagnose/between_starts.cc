#include "explain/diagnose/between_starts.h"

#include <algorithm>

namespace fullbore::diagnose {

namespace {

constexpr double kNormal95 = 1.96;

bool WasRestless(const Diagnosis& diagnosis) {
  return std::ranges::find(diagnosis.fitness.conditions, "noise", &fitness::Condition::id) !=
         diagnosis.fitness.conditions.end();
}

}  // namespace

double BetweenStarts(const Diagnosis& before, const Diagnosis& after) {
  const bool restless = WasRestless(before) || WasRestless(after);
  return kNormal95 * (restless ? kBetweenRestlessStarts : kBetweenStarts);
}

}  // namespace fullbore::diagnose
