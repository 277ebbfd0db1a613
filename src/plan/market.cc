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

bool HasMore(const Machine& machine, const Machine& cheaper) {
  return machine.cores > cheaper.cores || machine.memory_bytes > cheaper.memory_bytes ||
         machine.device_memory_bytes > cheaper.device_memory_bytes ||
         machine.link_bytes_per_s > cheaper.link_bytes_per_s;
}

}  // namespace

std::vector<Machine> MachinesWith(const Market& market, const roofline::Device& device, int64_t gpus) {
  std::vector<Machine> all;
  for (const Offer& offer : market.offers) {
    const Machine& one = offer.machine;
    if (one.device == &device && gpus % one.gpus == 0 && gpus <= offer.up_to)
      all.push_back(Multiplied(one, gpus / one.gpus));
  }
  std::ranges::stable_sort(all, {}, [](const Machine& machine) {
    return machine.per_hour.value_or(std::numeric_limits<double>::infinity());
  });
  std::vector<Machine> worth;
  for (Machine& machine : all) {
    const bool more =
        std::ranges::all_of(worth, [&](const Machine& cheaper) { return HasMore(machine, cheaper); });
    if (more) worth.push_back(std::move(machine));
  }
  return worth;
}

bool Sells(const Market& market, const roofline::Device& device) {
  return std::ranges::any_of(market.offers,
                             [&](const Offer& offer) { return offer.machine.device == &device; });
}

}  // namespace fullbore::plan
