#include "tune/trial/trial.h"

#include <array>
#include <limits>
#include <utility>

#include "record/json_text.h"
#include "tune/knob/knob.h"

namespace fullbore::tune {

namespace {

using nlohmann::json;

constexpr std::array<std::pair<Outcome, std::string_view>, 6> kNames = {{
    {Outcome::kOk, "ok"},
    {Outcome::kOutOfMemory, "out-of-memory"},
    {Outcome::kCrashed, "crashed"},
    {Outcome::kHung, "hung"},
    {Outcome::kRefused, "refused"},
    {Outcome::kEndedEarly, "ended-early"},
}};

template <typename T>
std::optional<T> NumberIn(const json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_number()) return std::nullopt;
  return at->get<T>();
}

bool FlagIn(const json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_boolean() && at->get<bool>();
}

}  // namespace

std::string_view Name(Outcome outcome) {
  for (const auto& [one, name] : kNames) {
    if (one == outcome) return name;
  }
  return "";
}

std::optional<Outcome> OutcomeNamed(std::string_view name) {
  for (const auto& [outcome, one] : kNames) {
    if (one == name) return outcome;
  }
  return std::nullopt;
}

void AddRate(const Trial& trial, nlohmann::ordered_json& object) {
  const char* name = trial.unit == kStepsPerSecond    ? "steps_per_s"
                     : trial.unit == kTokensPerSecond ? "useful_tokens_per_s"
                                                      : "samples_per_s";
  object["samples_per_s"] = object["steps_per_s"] = object["ci95"] = nullptr;
  if (trial.rate) {
    object[name] = trial.rate->mean;
    object["ci95"] = {trial.rate->low, trial.rate->high};
  }
  object["unit"] = trial.unit;
}

nlohmann::ordered_json ToJson(const Trial& trial) {
  nlohmann::ordered_json object = {{"schema", "fullbore.measure/1"},
                                   {"settings", ToJson(trial.settings)},
                                   {"outcome", Name(trial.outcome)}};
  if (!trial.refused.empty()) object["refused"] = trial.refused;
  if (!trial.why.empty()) object["why"] = trial.why;
  AddRate(trial, object);
  object["noisy"] = trial.noisy;
  if (trial.cut_short) object["cut_short"] = true;
  if (trial.proves) object["proves"] = true;
  if (trial.in_slices) object["in_slices"] = true;
  if (trial.apart) object["apart"] = true;
  object["predicted"] = OrNull(trial.predicted);
  object["peak_memory_bytes"] = OrNull(trial.peak_memory_bytes);
  if (trial.memory_filled) object["memory_filled"] = *trial.memory_filled;
  object["busy"] = OrNull(trial.busy);
  object["steps"] = trial.steps;
  object["seconds"] = trial.seconds;
  if (!trial.first_losses.empty()) object["first_losses"] = trial.first_losses;
  object["run"] = trial.run;
  return object;
}

std::vector<double> Numbers(const json& array) {
  std::vector<double> numbers;
  if (!array.is_array()) return numbers;
  for (const json& each : array) {
    if (!each.is_number() && !each.is_null()) return {};
    numbers.push_back(each.is_null() ? std::numeric_limits<double>::quiet_NaN() : each.get<double>());
  }
  return numbers;
}

Result<Trial> TrialFrom(const json& object) {
  const auto settings = object.find("settings");
  const auto outcome = OutcomeNamed(record::TextIn(object, "outcome"));
  if (settings == object.end() || !settings->is_object() || !outcome)
    return Error{ErrorCode::kCorrupt, "not a trial: it lacks its settings or its outcome", ""};
  Trial trial;
  for (const auto& [name, value] : settings->items()) trial.settings[name] = value;
  trial.outcome = *outcome;
  trial.refused = record::TextIn(object, "refused");
  trial.why = record::TextIn(object, "why");
  // Earlier versions kept it only as the beginning of the reason.
  if (const std::string knob = trial.why.substr(0, trial.why.find(':'));
      trial.outcome == Outcome::kRefused && trial.refused.empty() && KnobNamed(knob) != nullptr)
    trial.refused = knob;
  // What earlier versions kept has steps under the name of samples, too, beside their unit.
  auto rate = NumberIn<double>(object, "steps_per_s");
  if (!rate) rate = NumberIn<double>(object, "samples_per_s");
  const auto interval = object.find("ci95");
  if (rate) {
    trial.rate = Rate{*rate, *rate, *rate};
    if (interval != object.end() && interval->is_array() && interval->size() == 2 &&
        (*interval)[0].is_number() && (*interval)[1].is_number())
      trial.rate = Rate{*rate, (*interval)[0].get<double>(), (*interval)[1].get<double>()};
  }
  trial.noisy = FlagIn(object, "noisy");
  trial.cut_short = FlagIn(object, "cut_short");
  trial.proves = FlagIn(object, "proves");
  trial.in_slices = FlagIn(object, "in_slices");
  trial.apart = FlagIn(object, "apart");
  if (const std::string unit = record::TextIn(object, "unit"); !unit.empty()) trial.unit = unit;
  trial.predicted = NumberIn<double>(object, "predicted");
  trial.peak_memory_bytes = NumberIn<int64_t>(object, "peak_memory_bytes");
  trial.memory_filled = NumberIn<double>(object, "memory_filled");
  trial.busy = NumberIn<double>(object, "busy");
  trial.steps = NumberIn<int64_t>(object, "steps").value_or(0);
  trial.seconds = NumberIn<double>(object, "seconds").value_or(0);
  if (const auto losses = object.find("first_losses"); losses != object.end())
    trial.first_losses = Numbers(*losses);
  trial.run = record::TextIn(object, "run");
  return trial;
}

}  // namespace fullbore::tune
