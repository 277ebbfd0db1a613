#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/text.h"

namespace fullbore::plan {

namespace {

constexpr double kMillion = 1e6, kThousand = 1e3;
constexpr double kSecondsPerHour = 3600;
// Throughputs that differ by less are as good: then the smaller batch is the better choice.
constexpr double kAsGood = 0.95;
constexpr const char* kUsual[] = {"T4", "V100", "A100", "H100", "MI300X"};

std::vector<const roofline::Device*> DevicesOf(const std::vector<Recorded>& recorded,
                                               const Request& request) {
  std::vector<const roofline::Device*> devices = request.devices;
  if (devices.empty()) {
    for (const Recorded& one : recorded) devices.push_back(one.device);
    for (const Offer& offer : request.market.offers) devices.push_back(offer.machine.device);
    if (request.market.offers.empty()) {
      for (const char* name : kUsual) devices.push_back(roofline::DeviceMeant(name));
    }
    std::erase(devices, nullptr);
  }
  // Recorded devices first, then by name: whatever the order of the request.
  const auto rank = [&](const roofline::Device* device) {
    const bool own = std::ranges::any_of(recorded, [&](const Recorded& one) { return one.device == device; });
    return std::pair(!own, std::string_view(device->name));
  };
  std::ranges::sort(devices, {}, rank);
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

std::set<int64_t> NumbersOf(const std::vector<Recorded>& recorded, const Request& request) {
  std::set<int64_t> numbers(request.gpus.begin(), request.gpus.end());
  if (!numbers.empty()) return numbers;
  numbers = {1, 2, 4, 8};
  for (const Recorded& one : recorded) numbers.insert(one.gpus);
  return numbers;
}

std::optional<Range> Money(std::optional<double> per_hour, const Range& per_s, double count) {
  if (!per_hour || per_s.low <= 0 || count <= 0) return std::nullopt;
  const double money = *per_hour * count / kSecondsPerHour;
  return Range{money / per_s.high, money / per_s.expected, money / per_s.low};
}

std::optional<double> RunSamples(const Recorded& recorded, const Request& request) {
  if (request.samples) return request.samples;
  if (!recorded.run_samples) return std::nullopt;
  return static_cast<double>(*recorded.run_samples);
}

bool IsAsRecorded(const Recorded& recorded, const Estimate& estimate) {
  const Setup& setup = estimate.setup;
  const bool same_device = setup.device == nullptr || setup.device == recorded.device;
  const bool same_cores = !setup.machine || setup.machine->cores == recorded.CoresWith(recorded.gpus).logical;
  return same_device && same_cores && MayHaveTheRecordedLinks(recorded, setup) &&
         setup.gpus == recorded.gpus && estimate.workers == recorded.loaded_by &&
         recorded.profiler_expected == 1;
}

// Nothing is predicted of what was measured.
void TakeMeasured(const Recorded& recorded, Estimate& estimate) {
  const double per_s =
      recorded.PerStep() * static_cast<double>(recorded.gpus) / std::max(1.0, recorded.step_ns) * 1e9;
  const Range& spread = recorded.spread;
  estimate.per_s = {per_s / spread.high, per_s, per_s / spread.low};
  estimate.step = {recorded.step_ns, recorded.step_ns * spread.high, recorded.step_ns * spread.low};
}

// Epochs of different data sets are not compared.
bool AreOfOneEpoch(const std::vector<Recorded>& recorded) {
  return std::ranges::all_of(recorded, [&](const Recorded& one) {
    return !one.epoch_samples || one.epoch_samples == recorded.front().epoch_samples;
  });
}

Row RowOf(const std::vector<Recorded>& recorded, size_t which, const Setup& setup, const Request& request) {
  Row row;
  row.recording = which;
  const Recorded& from = recorded[which];
  row.estimate = EstimateOn(from, setup);
  if (setup.machine) row.per_hour = setup.machine->per_hour;
  if (!row.estimate.why_not.empty()) return row;
  row.measured = IsAsRecorded(from, row.estimate);
  if (row.measured) TakeMeasured(from, row.estimate);
  const Range& per_s = row.estimate.per_s;
  row.per_unit = Money(row.per_hour, per_s, UnitOf(from));
  if (from.batch <= 0) return row;
  if (from.epoch_samples && AreOfOneEpoch(recorded))
    row.per_epoch = Money(row.per_hour, per_s, static_cast<double>(*from.epoch_samples));
  if (const auto samples = RunSamples(from, request)) row.per_run = Money(row.per_hour, per_s, *samples);
  return row;
}

// Recordings of the device itself; of several, each. Else the first that tells anything of it.
std::vector<size_t> RecordingsFor(const std::vector<Recorded>& recorded, const Setup& setup) {
  std::vector<size_t> own;
  for (size_t i = 0; i < recorded.size(); ++i) {
    if (recorded[i].device == setup.device && !recorded[i].on_cpu) own.push_back(i);
  }
  if (!own.empty()) return own;
  for (size_t i = 0; i < recorded.size(); ++i) {
    if (EstimateOn(recorded[i], setup).why_not.empty()) return {i};
  }
  return {0};
}

bool Has(const Row& row) { return row.estimate.why_not.empty(); }

// Whether one row serves the goal better than another, of those that meet it.
bool IsBetter(const Row& a, const Row& b, const Goal& goal) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const double rate_a = a.estimate.per_s.expected, rate_b = b.estimate.per_s.expected;
  if (goal.budget) return rate_a > rate_b;
  if (goal.any()) {
    if (a.per_hour || b.per_hour) return a.per_hour.value_or(kNone) < b.per_hour.value_or(kNone);
    return rate_a < rate_b;  // no more than is needed
  }
  if (a.per_unit || b.per_unit)
    return (a.per_unit ? a.per_unit->expected : kNone) < (b.per_unit ? b.per_unit->expected : kNone);
  return rate_a > rate_b;
}

// Without a goal or prices, more devices are always more: only as many as the fewest are compared.
bool IsComparable(const Plan& plan, const Row& row, const Request& request) {
  if (request.goal.any() || row.per_unit) return true;
  const bool priced = std::ranges::any_of(plan.rows, [](const Row& one) { return one.per_unit.has_value(); });
  int64_t fewest = row.estimate.setup.gpus;
  for (const Row& one : plan.rows) fewest = Has(one) ? std::min(fewest, one.estimate.setup.gpus) : fewest;
  return !priced && row.estimate.setup.gpus == fewest;
}

struct Meets {
  bool expected = false, surely = false;
};

Meets MeetsGoal(const Row& row, const Recorded& from, const Request& request) {
  const Goal& goal = request.goal;
  const Range& per_s = row.estimate.per_s;
  if (!goal.any()) return {true, true};
  if (from.batch <= 0) return {};
  if (goal.need_per_s) return {per_s.expected >= *goal.need_per_s, per_s.low >= *goal.need_per_s};
  if (goal.budget)
    return {row.per_run && row.per_run->expected <= *goal.budget,
            row.per_run && row.per_run->high <= *goal.budget};
  const auto samples = RunSamples(from, request);
  if (!samples) return {};
  return {*samples / per_s.expected <= *goal.by_s, *samples / per_s.low <= *goal.by_s};
}

bool IsSameSetup(const Row& a, const Row& b) {
  const auto machine = [](const Setup& of) { return of.machine ? of.machine->name : ""; };
  const Setup &one = a.estimate.setup, &other = b.estimate.setup;
  return one.device == other.device && one.gpus == other.gpus && one.device_name == other.device_name &&
         machine(one) == machine(other);
}

// Of rows that do as well on the same devices, the one with the smallest batch.
size_t WithSmallestBatch(const Plan& plan, size_t chosen) {
  const auto batch = [&](size_t row) { return plan.recorded[plan.rows[row].recording].batch; };
  size_t smallest = chosen;
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const Row &row = plan.rows[i], &best = plan.rows[chosen];
    if (!Has(row) || !IsSameSetup(row, best) || batch(i) <= 0) continue;
    const bool as_good = row.estimate.per_s.expected >= kAsGood * best.estimate.per_s.expected;
    if (as_good && batch(i) < batch(smallest)) smallest = i;
  }
  return smallest;
}

std::optional<size_t> BestOf(const Plan& plan, const Goal& goal, auto&& of) {
  std::optional<size_t> best;
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    if (!Has(plan.rows[i]) || !of(plan.rows[i])) continue;
    if (!best || IsBetter(plan.rows[i], plan.rows[*best], goal)) best = i;
  }
  return best;
}

// Of those that cost as much for a sample, the one that is soonest done.
size_t FastestAtItsPrice(const Plan& plan, size_t cheapest) {
  constexpr double kAsMuch = 1.03;
  if (!plan.rows[cheapest].per_unit) return cheapest;
  const double most = kAsMuch * plan.rows[cheapest].per_unit->expected;
  size_t fastest = cheapest;
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const Row& row = plan.rows[i];
    const bool as_cheap = row.per_unit && row.per_unit->expected <= most;
    if (as_cheap && row.estimate.per_s.expected > plan.rows[fastest].estimate.per_s.expected) fastest = i;
  }
  return fastest;
}

bool IsRecorded(const Plan& plan, const Row& row) {
  return std::ranges::any_of(plan.recorded, [&](const Recorded& one) {
    return one.device == row.estimate.setup.device && one.device_name != "";
  });
}

// The best with another device; without prices the recorded one, if it is another. Else the recorded number of the same.
std::optional<size_t> VersusOf(const Plan& plan, size_t chosen, const Request& request, auto&& meets) {
  const Row& row = plan.rows[chosen];
  const auto other = [&](const Row& one) {
    return one.estimate.setup.device != row.estimate.setup.device && meets(one).expected;
  };
  std::optional<size_t> versus;
  if (!row.per_unit)
    versus = BestOf(plan, request.goal, [&](const Row& one) { return other(one) && IsRecorded(plan, one); });
  if (!versus) versus = BestOf(plan, request.goal, other);
  if (versus) return versus;
  return BestOf(plan, request.goal, [&](const Row& one) { return one.measured && !IsSameSetup(one, row); });
}

void Choose(const Request& request, Plan& plan) {
  const auto meets = [&](const Row& row) {
    return IsComparable(plan, row, request) ? MeetsGoal(row, plan.recorded[row.recording], request) : Meets{};
  };
  auto best = BestOf(plan, request.goal, [&](const Row& row) { return meets(row).expected; });
  if (!best) return;
  if (!request.goal.any()) best = FastestAtItsPrice(plan, *best);
  Choice choice;
  choice.row = WithSmallestBatch(plan, *best);
  if (choice.row != *best && meets(plan.rows[choice.row]).expected)
    choice.larger_batch = *best;
  else
    choice.row = *best;
  choice.sure = meets(plan.rows[choice.row]).surely;
  choice.versus = VersusOf(plan, choice.row, request, meets);
  plan.choice = choice;
}

std::string WhyNoChoice(const Plan& plan, const Request& request) {
  if (std::ranges::none_of(plan.rows, Has)) return "";  // what is not told says why
  const Goal& goal = request.goal;
  const bool counts = std::ranges::any_of(plan.recorded, [](const Recorded& one) { return one.batch > 0; });
  if (goal.any() && !counts)
    return "the goal counts samples, and the recording does not: say how many a step takes with --batch N";
  const bool counts_run = std::ranges::any_of(
      plan.recorded, [&](const Recorded& one) { return RunSamples(one, request).has_value(); });
  if (goal.by_s && !counts_run) return "how many samples the run has is not known: say it with --samples N";
  if (goal.budget && std::ranges::none_of(plan.rows, [](const Row& row) { return row.per_run.has_value(); }))
    return "what the run costs is not known: it takes --prices, with these devices in it";
  // What comes nearest: for a sum of money the cheapest, else the fastest.
  const bool cheapest = goal.budget.has_value();
  const auto nearest =
      BestOf(plan, cheapest ? Goal{} : Goal{std::nullopt, std::nullopt, 1}, [](const Row&) { return true; });
  return fmt::format("none of these meets it; the {} is {}, {} samples/s", cheapest ? "cheapest" : "fastest",
                     NameOf(plan.rows[*nearest]), FormatCount(plan.rows[*nearest].estimate.per_s.expected));
}

std::string Listed(const std::set<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

void AddOnce(const NotTold& one, std::vector<NotTold>& all) {
  if (std::ranges::none_of(
          all, [&](const NotTold& other) { return other.what == one.what && other.why == one.why; }))
    all.push_back(one);
}

// Devices that compute in float32 what was recorded in bfloat16: whoever goes there takes float16.
void SayWithoutBfloat16(Plan& plan) {
  const auto in_bfloat16 = [](const Recorded& from) {
    return !from.graphs.empty() && std::ranges::any_of(from.graphs.front().tasks, [](const auto& task) {
      return task.arithmetic == record::Arithmetic::kBFloat16;
    });
  };
  std::set<std::string> without;
  for (const Row& row : plan.rows) {
    const Setup& setup = row.estimate.setup;
    const bool none = setup.device != nullptr && setup.device->tflops.bf16 == 0;
    if (Has(row) && none && in_bfloat16(plan.recorded[row.recording])) without.insert(setup.device_name);
  }
  if (without.empty()) return;
  plan.not_told.push_back(
      {Listed(without) + " in float16",
       "the recording computes in bfloat16, which these have no units for: their rows are in "
       "float32, several times slower. A recording in float16 tells",
       ""});
}

void SayWhatIsNotTold(const Request& request, Plan& plan) {
  for (const Recorded& one : plan.recorded) {
    for (const NotTold& each : one.not_told) AddOnce(each, plan.not_told);
  }
  for (const Row& row : plan.rows) {
    const Estimate& estimate = row.estimate;
    if (estimate.not_told.empty() || plan.recorded[row.recording].on_cpu) continue;
    AddOnce({estimate.not_told, estimate.why_not, estimate.would_tell}, plan.not_told);
  }
  SayWithoutBfloat16(plan);
  if (request.market.offers.empty()) return;
  std::set<std::string> without;
  for (const Row& row : plan.rows) {
    if (Has(row) && !row.per_hour) without.insert(NameOf(row));
  }
  if (!without.empty())
    plan.not_told.push_back({"what these cost", "the file has no price for " + Listed(without), ""});
}

}  // namespace

double UnitOf(const Recorded& recorded) { return recorded.batch > 0 ? kMillion : kThousand; }

std::string NameOf(const Setup& setup) { return fmt::format("{}x {}", setup.gpus, setup.device_name); }

std::string NameOf(const Row& row) {
  std::string name = NameOf(row.estimate.setup);
  if (row.estimate.cores.logical > 0) name += fmt::format(" with {:g} cores", row.estimate.cores.logical);
  return name;
}

Plan PlanFor(std::vector<Recorded> recorded, const Request& request) {
  Plan plan;
  plan.recorded = std::move(recorded);
  plan.currency = request.market.currency;
  std::vector<Setup> setups;
  const auto numbers = NumbersOf(plan.recorded, request);
  if (request.devices.empty()) {
    for (const Recorded& one : plan.recorded) {
      if (one.device != nullptr || one.on_cpu || !one.refusal.empty()) continue;
      const std::string name = one.device_name.empty() ? "this device" : one.device_name;
      for (const int64_t gpus : numbers) setups.push_back({name, nullptr, gpus, std::nullopt});
    }
  }
  for (const roofline::Device* device : DevicesOf(plan.recorded, request)) {
    for (const int64_t gpus : numbers) {
      const std::string name = roofline::ShortName(*device);
      const auto machines = MachinesWith(request.market, *device, gpus);
      for (const Machine& machine : machines) setups.push_back({name, device, gpus, machine});
      // Of a device that the file has, what it does not have so many of is not for sale.
      if (machines.empty() && !(Sells(request.market, *device) && request.gpus.empty()))
        setups.push_back({name, device, gpus, std::nullopt});
    }
  }
  for (const Setup& setup : setups) {
    for (const size_t which : RecordingsFor(plan.recorded, setup))
      plan.rows.push_back(RowOf(plan.recorded, which, setup, request));
  }
  Choose(request, plan);
  if (!plan.choice) plan.why_no_choice = WhyNoChoice(plan, request);
  SayWhatIsNotTold(request, plan);
  return plan;
}

}  // namespace fullbore::plan
