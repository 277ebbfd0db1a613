#include "plan/cores.h"

#include <algorithm>
#include <array>

namespace fullbore::plan {

using replay::Outlook;

namespace {

constexpr std::array<double, 3> kYield = {0, 0.25, 0.6};  // cautious, expected, hopeful

double ThreadsOf(const Cores& cores, Outlook outlook) {
  if (cores.threads_per_core > 0) return cores.threads_per_core;
  return outlook == Outlook::kCautious ? 2 : 1;
}

double YieldOf(const Cores& cores, Outlook outlook) {
  const bool assumed = cores.threads_per_core <= 0;
  return kYield[static_cast<size_t>(assumed && outlook == Outlook::kCautious ? Outlook::kExpected : outlook)];
}

}  // namespace

double Capacity(const Cores& cores, double busy, Outlook outlook) {
  const double running = std::min(busy, cores.logical);
  const double chip = cores.logical / ThreadsOf(cores, outlook);
  return std::min(running, chip) + YieldOf(cores, outlook) * std::max(0.0, running - chip);
}

double CoresFor(double capacity, const Cores& kind, Outlook outlook) {
  const double each = Capacity({1, kind.threads_per_core}, outlook);
  return capacity / each;
}

}  // namespace fullbore::plan
