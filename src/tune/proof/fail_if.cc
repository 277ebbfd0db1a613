#include "tune/proof/fail_if.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace fullbore::tune {

namespace {

using Kind = FailIf::Kind;

Error NoCondition(const std::string& text) {
  return {ErrorCode::kInvalidArgument, fmt::format("--fail-if '{}' is no condition", text),
          "there are slower, 'slower 3%', not-faster, 'not-faster 10%' and not-proven"};
}

// "3%" as 0.03.
std::optional<double> Percent(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  const auto number = ParseDouble(Trim(text.substr(0, text.size() - 1)));
  return number && *number > 0 && *number < 1000 ? std::optional(*number / 100) : std::nullopt;
}

std::optional<FailIf> ParseOne(const std::string& text) {
  const std::string_view whole = Trim(text);
  const size_t end = std::min(whole.find_first_of(": \t"), whole.size());
  const std::string_view name = whole.substr(0, end);
  const std::string_view rest = Trim(whole.substr(std::min(end + 1, whole.size())));
  FailIf condition;
  condition.text = std::string(whole);
  if (name == "not-proven") {
    condition.kind = Kind::kNotProven;
    return end == whole.size() ? std::optional(condition) : std::nullopt;
  }
  const bool is_slower = name == "slower";
  if (!is_slower && name != "not-faster") return std::nullopt;
  condition.kind = is_slower ? Kind::kSlower : Kind::kNotFaster;
  if (end == whole.size()) return condition;
  const auto by = Percent(rest);
  if (!by || (is_slower && *by >= 1)) return std::nullopt;
  condition.threshold = is_slower ? 1 - *by : 1 + *by;
  return condition;
}

}  // namespace

Result<std::vector<FailIf>> ParseFailIf(const std::vector<std::string>& texts) {
  std::vector<FailIf> conditions;
  for (const std::string& text : texts) {
    auto condition = ParseOne(text);
    if (!condition) return NoCondition(text);
    conditions.push_back(std::move(*condition));
  }
  return conditions;
}

std::vector<double> ThresholdsOf(const std::vector<FailIf>& conditions) {
  std::vector<double> thresholds;
  for (const FailIf& condition : conditions) {
    if (condition.kind != Kind::kNotProven) thresholds.push_back(condition.threshold);
  }
  if (thresholds.empty()) thresholds.push_back(1);
  return thresholds;
}

std::vector<std::string> WhatHolds(const std::vector<FailIf>& conditions,
                                   const std::optional<Proof::Gain>& gain) {
  const bool is_told = gain && IsTold(*gain, ThresholdsOf(conditions));
  std::vector<std::string> holding;
  for (const FailIf& condition : conditions) {
    const bool holds = condition.kind == Kind::kSlower      ? gain && gain->high < condition.threshold
                       : condition.kind == Kind::kNotFaster ? !gain || gain->low <= condition.threshold
                                                            : !is_told;
    if (holds) holding.push_back(condition.text);
  }
  return holding;
}

}  // namespace fullbore::tune
