#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "plan/plan.h"
#include "plan/plan_terminal.h"

namespace fullbore::plan {

namespace {

constexpr double kAsMuch = 0.025;  // what differs by less is the same

constexpr char kOverlap[] =
    " Their ranges overlap: run both for an hour before you buy, and give plan both recordings.";

struct Priced {
  const Range& money;
  std::string per;  // "per epoch"
};

// By what both are priced: an epoch where its samples are known.
std::optional<Priced> PriceOf(const Row& row, const Row& other, const Recorded& from) {
  if (row.per_epoch && other.per_epoch) return Priced{*row.per_epoch, "per epoch"};
  if (!row.per_unit || !other.per_unit) return std::nullopt;
  return Priced{*row.per_unit, from.batch > 0 ? "per million samples" : "per 1,000 steps"};
}

std::string Money(double money, const std::string& currency) { return MoneyText(money) + " " + currency; }

std::string Times(double times) {
  return times < 2 ? fmt::format("{:.2f} times", times) : fmt::format("{:.2g} times", times);
}

std::string Costs(const Row& row) { return row.estimate.setup.gpus > 1 ? "cost" : "costs"; }

std::string Rate(const Row& row, const Recorded& from) {
  return fmt::format("{} {}/s", FormatCount(row.estimate.per_s.expected),
                     from.batch > 0 ? "samples" : "steps");
}

std::string Compared(const Plan& plan, const Row& row, const Row& other) {
  const Recorded& from = plan.recorded[row.recording];
  const auto price = PriceOf(row, other, from), its = PriceOf(other, row, from);
  const double times = row.estimate.per_s.expected / other.estimate.per_s.expected;
  const std::string speed = std::abs(times - 1) < kAsMuch ? "as fast" : "at " + Times(times) + " its speed";
  const auto are_apart = [](const Range& a, const Range& b) { return a.high < b.low || b.high < a.low; };
  if (!price || !its) {
    const bool as_fast = std::abs(times - 1) < kAsMuch;
    const bool sure = as_fast || are_apart(row.estimate.per_s, other.estimate.per_s);
    return fmt::format("{} would do {}, {} {} ({}).{}", NameOf(row), Rate(row, from),
                       as_fast ? "about as much as" : Times(times), NameOf(other), Rate(other, from),
                       sure ? "" : kOverlap);
  }
  const double less = 1 - price->money.expected / its->money.expected;
  const std::string how_much = std::abs(less) < kAsMuch ? "about as much"
                               : less > 0               ? FormatPercent(less) + " less"
                                                        : FormatPercent(-less) + " more";
  const bool equal = std::abs(less) < kAsMuch;
  std::string text =
      fmt::format("{} {} {} {} {} {} ({} against {}), {}.", NameOf(row), Costs(row), how_much, price->per,
                  equal ? "as" : "than", NameOf(other), MoneyText(price->money.expected),
                  Money(its->money.expected, plan.currency), speed);
  return equal || are_apart(price->money, its->money) ? text : text + kOverlap;
}

std::string GoalText(const Request& request, const std::string& currency) {
  if (request.goal.need_per_s) return fmt::format("{} samples/s", FormatCount(*request.goal.need_per_s));
  if (request.goal.by_s)
    return "the run within " + FormatDuration(static_cast<int64_t>(*request.goal.by_s * 1e9));
  return fmt::format("the run for {}", Money(*request.goal.budget, currency));
}

std::string Chosen(const Plan& plan, const Request& request) {
  const Choice& choice = *plan.choice;
  const Row& row = plan.rows[choice.row];
  const Recorded& from = plan.recorded[row.recording];
  if (!request.goal.any()) return "";
  const std::string what = request.goal.budget ? "the fastest"
                           : row.per_hour      ? "the cheapest"
                                               : "the smallest";
  std::string text = fmt::format("For {}: {} is {}, {}", GoalText(request, plan.currency), what, NameOf(row),
                                 Rate(row, from));
  if (row.per_run) text += fmt::format(", {} for the run", Money(row.per_run->expected, plan.currency));
  return text + (choice.sure ? ", also at the low end of its range."
                             : "; at the low end of its range it does not meet it.");
}

// With nothing to compare it with.
std::string Alone(const Plan& plan, const Row& row) {
  const Recorded& from = plan.recorded[row.recording];
  std::string text = fmt::format("{} would do {}", NameOf(row), Rate(row, from));
  if (const auto price = PriceOf(row, row, from))
    text +=
        fmt::format(", and {} {} {}", Costs(row), Money(price->money.expected, plan.currency), price->per);
  return text + ".";
}

std::string WhatBinds(const Row& row) {
  switch (row.estimate.binds) {
    case Pipe::kCores:
    case Pipe::kLoader: {
      std::string text = fmt::format("{} is bound by its loader", NameOf(row));
      if (row.estimate.cores_needed && *row.estimate.cores_needed > row.estimate.cores.logical)
        text += fmt::format(": {:.0f} cores would keep it fed", std::ceil(*row.estimate.cores_needed));
      return text + "; a faster device would wait as well.";
    }
    case Pipe::kHost:
      return fmt::format(
          "{} is bound by the host that launches its work: a faster device would hardly help; "
          "CUDA graphs or torch.compile would.",
          NameOf(row));
    case Pipe::kLink:
      return fmt::format("{} is bound by the exchange between its devices.", NameOf(row));
    default:
      break;
  }
  return "";
}

}  // namespace

std::vector<std::string> Sentences(const Plan& plan, const Request& request) {
  std::vector<std::string> sentences;
  if (!plan.choice) {
    if (!plan.why_no_choice.empty())
      sentences.push_back(
          fmt::format("{}{}.", request.goal.any() ? "For " + GoalText(request, plan.currency) + ": " : "",
                      plan.why_no_choice));
    return sentences;
  }
  const Row& row = plan.rows[plan.choice->row];
  if (std::string chosen = Chosen(plan, request); !chosen.empty()) sentences.push_back(std::move(chosen));
  if (plan.choice->versus)
    sentences.push_back(Compared(plan, row, plan.rows[*plan.choice->versus]));
  else if (!request.goal.any())
    sentences.push_back(Alone(plan, row));
  if (plan.choice->larger_batch) {
    const Row& larger = plan.rows[*plan.choice->larger_batch];
    const Recorded &from = plan.recorded[row.recording], &other = plan.recorded[larger.recording];
    sentences.push_back(
        fmt::format("A batch of {:g} does as well as {:g} ({} against {}): the smaller is the better choice.",
                    from.batch, other.batch, Rate(row, from), Rate(larger, other)));
  }
  if (std::string binds = WhatBinds(row); !binds.empty()) sentences.push_back(std::move(binds));
  return sentences;
}

}  // namespace fullbore::plan
