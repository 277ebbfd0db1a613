#include "tune/proof/fail_if.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "record/share.h"

namespace fullbore::tune {

namespace {

using Kind = FailIf::Kind;

Error NoCondition(const std::string& text) {
  return {
      ErrorCode::kInvalidArgument, fmt::format("--fail-if '{}' is not a condition", text),
      "there are slower, 'slower 3%', not-faster, 'not-faster 10%', not-proven, 'samples_per_s < -3%' and\n"
      "'data_wait > +3pt', or another share of the report"};
}

// "3%" as 0.03, or "3pt".
std::optional<double> Hundredths(std::string_view text, std::string_view unit) {
  if (!text.ends_with(unit)) return std::nullopt;
  const auto number = ParseDouble(Trim(text.substr(0, text.size() - unit.size())));
  return number && *number > 0 && *number < 1000 ? std::optional(*number / 100) : std::nullopt;
}

std::optional<double> Percent(std::string_view text) { return Hundredths(text, "%"); }

// "data_wait > +3pt": the sign is that of the side which is looked at.
std::optional<FailIf> ParseQuantity(std::string_view whole, size_t side) {
  const bool grew = whole[side] == '>';
  const std::string name(Trim(whole.substr(0, side)));
  std::string_view by = Trim(whole.substr(side + 1));
  if (!by.starts_with(grew ? '+' : '-')) return std::nullopt;
  by.remove_prefix(1);
  if (name == "samples_per_s") {
    const auto percent = Percent(by);
    if (grew || !percent || *percent >= 1) return std::nullopt;
    return FailIf{Kind::kBelow, 1 - *percent, "", std::string(whole)};
  }
  const auto points = Hundredths(by, "pt");
  if (!points || *points >= 1 || !record::ShareNamed(name)) return std::nullopt;
  return FailIf{grew ? Kind::kShareGrew : Kind::kShareShrank, *points, name, std::string(whole)};
}

std::optional<FailIf> ParseOne(const std::string& text) {
  const std::string_view whole = Trim(text);
  if (const size_t side = whole.find_first_of("<>"); side != std::string_view::npos)
    return ParseQuantity(whole, side);
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

bool IsKnown(const FailIf& condition, const MeasuredChange& measured) {
  return condition.IsOfShare() ? measured.shares.contains(condition.share) : measured.gain.has_value();
}

std::vector<double> ThresholdsOf(const std::vector<FailIf>& conditions) {
  std::vector<double> thresholds;
  for (const FailIf& condition : conditions) {
    if (condition.kind == Kind::kBelow) thresholds.push_back(1);  // whether it is more than noise
    if (condition.kind == Kind::kSlower || condition.kind == Kind::kNotFaster)
      thresholds.push_back(condition.threshold);
  }
  if (thresholds.empty()) thresholds.push_back(1);
  return thresholds;
}

namespace {

bool HoldsOfShare(const FailIf& condition, const diagnose::ShareMoves& shares) {
  const auto move = shares.find(condition.share);
  if (move == shares.end()) return false;
  return condition.kind == Kind::kShareGrew ? move->second.low > condition.threshold
                                            : move->second.high < -condition.threshold;
}

bool IsSlower(const FailIf& condition, const std::optional<Proof::Gain>& gain) {
  if (condition.kind == Kind::kSlower) return gain && gain->high < condition.threshold;
  return gain && gain->expected < condition.threshold && gain->high < 1;
}

bool Holds(const FailIf& condition, const MeasuredChange& measured, const std::vector<double>& thresholds) {
  const auto& gain = measured.gain;
  switch (condition.kind) {
    case Kind::kSlower:
    case Kind::kBelow:
      return IsSlower(condition, gain) || IsSlower(condition, measured.undisturbed);
    case Kind::kNotFaster:
      return !gain || gain->low <= condition.threshold;
    case Kind::kNotProven:
      return !gain || !IsTold(*gain, thresholds);
    case Kind::kShareGrew:
    case Kind::kShareShrank:
      return HoldsOfShare(condition, measured.shares);
  }
  return false;
}

}  // namespace

std::vector<std::string> WhatHolds(const std::vector<FailIf>& conditions, const MeasuredChange& measured) {
  const std::vector<double> thresholds = ThresholdsOf(conditions);
  std::vector<std::string> holding;
  for (const FailIf& condition : conditions) {
    if (Holds(condition, measured, thresholds)) holding.push_back(condition.text);
  }
  return holding;
}

}  // namespace fullbore::tune
