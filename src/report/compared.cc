#include "report/compared.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "explain/diagnose/logged.h"
#include "report/json.h"

namespace fullbore::report {

namespace {

using diagnose::Change;
using diagnose::Comparison;
using diagnose::Diagnosis;

constexpr size_t kMostLoggedRows = 16;  // losses come first; --json has all

// ---- cells ----

std::string RateText(const Diagnosis& run) {
  if (run.steps == 0 || run.sampled) return "";
  if (run.samples_per_s) return FormatCount(*run.samples_per_s) + " samples/s";
  return FormatCount(run.steps_per_s) + " steps/s";
}

std::string GainText(const Comparison& comparison) {
  if (comparison.rate_before <= 0 || comparison.rate_after <= 0) return "";
  if (!comparison.interval_known) return fmt::format("{:.2f}x, too few steps to tell", comparison.speedup);
  return fmt::format("{:.2f}x ({:.2f} to {:.2f}){}", comparison.speedup, comparison.speedup_low,
                     comparison.speedup_high, comparison.significant ? "" : ", within the noise");
}

std::string VerdictText(const Diagnosis& run) {
  if (!run.fitness.CanBeJudged()) return "cannot be judged";
  if (run.findings.empty()) return "nothing to gain was found";
  const diagnose::Finding& first = run.findings.front();
  return first.cause.empty() ? first.id : fmt::format("{}: {}", first.id, first.cause);
}

std::string StepText(const Diagnosis& run) {
  return run.mean_step_ns > 0 ? FormatDuration(static_cast<int64_t>(run.mean_step_ns)) : "";
}

// "46 % (+3.1 pt)"; a change of less than a point is not told.
std::string ShareText(double share, const Change* change) {
  const std::string text = FormatPercent(share);
  if (!change) return text;
  const std::string points = fmt::format("{:+.1f} pt", 100 * (*change->after - *change->before));
  if (!change->move) return fmt::format("{} ({}, too few steps to tell)", text, points);
  return fmt::format("{} ({}{})", text, points, change->move->IsMoreThanNoise() ? "" : ", within the noise");
}

// ---- rows ----

template <typename CellOf>
ComparedRow RowOf(const Compared& compared, const std::string& label, CellOf cell_of) {
  ComparedRow row{label, {}};
  for (size_t i = 0; i < compared.runs.size(); ++i) row.cells.push_back(cell_of(i));
  return row;
}

const Change* ChangeIn(const std::vector<Change>& changes, const std::string& what) {
  const auto found = std::ranges::find(changes, what, &Change::what);
  return found == changes.end() ? nullptr : &*found;
}

ComparedRow ShareRow(const Compared& compared, const std::string& name) {
  return RowOf(compared, name, [&](size_t i) {
    const auto& shares = compared.runs[i].shares;
    const auto share = shares.find(name);
    const Change* change = i == 0 ? nullptr : ChangeIn(compared.against_first[i - 1].shares, name);
    return ShareText(share == shares.end() ? 0 : share->second, change);
  });
}

// Those that changed by a point in any of the runs, the one that changed most first.
ComparedSection SharesOf(const Compared& compared) {
  std::map<std::string, double> moved;
  for (const Comparison& comparison : compared.against_first) {
    for (const Change& change : comparison.shares)
      moved[change.what] = std::max(moved[change.what], std::abs(*change.after - *change.before));
  }
  std::vector<std::pair<std::string, double>> names(moved.begin(), moved.end());
  std::ranges::stable_sort(names, [](const auto& a, const auto& b) { return a.second > b.second; });
  ComparedSection section{"shares of the step", {}};
  for (const auto& [name, by] : names) section.rows.push_back(ShareRow(compared, name));
  return section;
}

ComparedSection FactsOf(const Compared& compared) {
  std::set<std::string> names;
  for (const Comparison& comparison : compared.against_first) {
    for (const Change& change : comparison.facts) names.insert(change.what);
  }
  ComparedSection section{"facts", {}};
  for (const std::string& name : names) {
    section.rows.push_back(RowOf(compared, name, [&](size_t i) {
      const auto fact = compared.runs[i].facts.find(name);
      return fact == compared.runs[i].facts.end() ? std::string("-") : fact->second;
    }));
  }
  return section;
}

ComparedSection SpeedOf(const Compared& compared) {
  const auto& runs = compared.runs;
  return {"speed",
          {RowOf(compared, "throughput", [&](size_t i) { return RateText(runs[i]); }),
           RowOf(compared, "against the first",
                 [&](size_t i) { return i == 0 ? "" : GainText(compared.against_first[i - 1]); }),
           RowOf(compared, "a step", [&](size_t i) { return StepText(runs[i]); }),
           RowOf(compared, "verdict", [&](size_t i) { return VerdictText(runs[i]); })}};
}

// Of what the scripts log themselves, where all are at the same step, and at their ends: told, and not judged.
ComparedSection LoggedOf(const Compared& compared) {
  std::vector<const Diagnosis*> runs;
  for (const Diagnosis& run : compared.runs) runs.push_back(&run);
  ComparedSection section{"logged by the script", {}};
  const auto add = [&](const std::string& label, const std::vector<std::optional<double>>& values) {
    section.rows.push_back(RowOf(compared, label, [&](size_t i) { return diagnose::LoggedText(values[i]); }));
  };
  for (const diagnose::LoggedTogether& together : diagnose::Together(runs)) {
    add(together.WhereText(), together.there);
    if (together.at_end != together.there) add(together.EndText(), together.at_end);
  }
  if (section.rows.size() > kMostLoggedRows) section.rows.resize(kMostLoggedRows);
  return section;
}

ComparedSection ConditionsOf(const Compared& compared) {
  using Outcome = ConditionAnswer::Outcome;
  ComparedSection section{"conditions", {}};
  for (const ConditionAnswer& answer : compared.conditions) {
    auto row = std::ranges::find(section.rows, answer.condition, &ComparedRow::label);
    if (row == section.rows.end()) {
      section.rows.push_back({answer.condition, std::vector<std::string>(compared.runs.size())});
      row = section.rows.end() - 1;
    }
    row->cells[answer.run] = answer.outcome == Outcome::kFailed   ? "fails"
                             : answer.outcome == Outcome::kPassed ? "passes"
                                                                  : "not known";
  }
  return section;
}

}  // namespace

std::vector<std::string> Compared::FailedIf() const {
  std::vector<std::string> failed;
  for (const ConditionAnswer& answer : conditions) {
    const bool is_told = std::ranges::find(failed, answer.condition) != failed.end();
    if (answer.outcome == ConditionAnswer::Outcome::kFailed && !is_told) failed.push_back(answer.condition);
  }
  return failed;
}

ComparedTable TableOf(const Compared& compared) {
  ComparedTable table;
  for (const Diagnosis& run : compared.runs) table.runs.push_back(run.run_id);
  for (ComparedSection& section : std::vector{SpeedOf(compared), ConditionsOf(compared), LoggedOf(compared),
                                              SharesOf(compared), FactsOf(compared)}) {
    if (!section.rows.empty()) table.sections.push_back(std::move(section));
  }
  return table;
}

nlohmann::ordered_json ToJson(const Compared& compared) {
  nlohmann::ordered_json json = {{"schema", "fullbore.comparisons/1"},
                                 {"runs", nlohmann::ordered_json::array()},
                                 {"against_first", nlohmann::ordered_json::array()}};
  for (const Diagnosis& run : compared.runs) json["runs"].push_back(run.run_id);
  for (size_t i = 0; i < compared.against_first.size(); ++i)
    json["against_first"].push_back(
        ToJson(compared.runs[0], compared.runs[i + 1], compared.against_first[i]));
  if (!compared.conditions.empty()) json["failed_if"] = compared.FailedIf();
  return json;
}

}  // namespace fullbore::report
