#include "plan/market.h"

#include <algorithm>
#include <limits>

namespace fullbore::plan {

namespace {

Machine Multiplied(const Machine& machine, int64_t times) {
  Machine several = machine;
  const auto n = static_cast<double>(times);
  several.gpus *= times;
  several.cores *= n;
  several.memory_bytes *= n;
  if (several.per_hour) *several.per_hour *= n;
  return several;
}

}  // namespace

std::optional<Machine> MachineWith(const Market& market, const roofline::Device& device, int64_t gpus) {
  constexpr double kNoPrice = std::numeric_limits<double>::infinity();
  std::optional<Machine> best;
  for (const Offer& offer : market.offers) {
    const Machine& one = offer.machine;
    if (one.device != &device || gpus % one.gpus != 0 || gpus > offer.up_to) continue;
    const Machine several = Multiplied(one, gpus / one.gpus);
    if (!best || several.per_hour.value_or(kNoPrice) < best->per_hour.value_or(kNoPrice)) best = several;
  }
  return best;
}

bool Sells(const Market& market, const roofline::Device& device) {
  return std::ranges::any_of(market.offers,
                             [&](const Offer& offer) { return offer.machine.device == &device; });
}

}  // namespace fullbore::plan
