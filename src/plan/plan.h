// The next purchase: recorded runs on other devices, numbers of devices and machines, with what each costs, and the one
// that serves a goal best. Pure: recordings and a market in, rows and a choice out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/estimate.h"
#include "plan/market.h"
#include "plan/recorded.h"

namespace fullbore::plan {

// One of them at most.
struct Goal {
  std::optional<double> need_per_s;  // samples
  std::optional<double> by_s;        // the whole run, within so many seconds
  std::optional<double> budget;      // the whole run, for so much

  bool any() const { return need_per_s || by_s || budget; }
};

struct Request {
  std::vector<const roofline::Device*>
      devices;                // empty: the recorded ones, and those of the market or well-known ones
  std::vector<int64_t> gpus;  // empty: 1, 2, 4, 8 and what was recorded
  Market market;
  Goal goal;
  std::optional<double> samples;  // of the whole run; else as many as were recorded
};

struct Row {
  size_t recording = 0;  // into Plan::recorded: what it is told from
  Estimate estimate;
  bool measured = false;  // it is what was recorded, on that machine
  std::optional<double> per_hour;
  std::optional<Range> per_unit, per_epoch,
      per_run;  // money: for kUnit samples, or steps; `expected` within the ends
};
// What prices are shown for: a million samples, or a thousand steps where samples are not counted.
double UnitOf(const Recorded& recorded);

struct Choice {
  size_t row = 0;
  bool sure = false;             // it meets the goal at the low end of its range, too
  std::optional<size_t> versus;  // the best with another device, or the recorded one
  // The same devices do as well, but for a tenth of the difference that a range allows, with the larger batch of this row.
  std::optional<size_t> larger_batch;
};

struct Plan {
  std::vector<Recorded> recorded;
  std::vector<Row>
      rows;  // by device and number, recorded devices first; the order of the request does not matter
  std::optional<Choice> choice;
  std::string why_no_choice;  // where there is a goal, and nothing meets it
  std::string currency;
  std::vector<NotTold> not_told;
};

Plan PlanFor(std::vector<Recorded> recorded, const Request& request);

// "2x T4", and "2x T4 with 8 cores": how setups and rows are called.
std::string NameOf(const Setup& setup);
std::string NameOf(const Row& row);
// The sentences that matter, the first one first.
std::vector<std::string> Sentences(const Plan& plan, const Request& request);

}  // namespace fullbore::plan
