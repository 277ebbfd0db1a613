#include "plan/plan_json.h"

#include <nlohmann/json.hpp>

#include "record/lane.h"

namespace fullbore::plan {

namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const Range& range) {
  return {{"low", range.low}, {"expected", range.expected}, {"high", range.high}};
}

template <typename T>
void AddIf(Json& json, const char* name, const std::optional<T>& value) {
  if (!value) return;
  if constexpr (std::is_same_v<T, Range>) {
    json[name] = ToJson(*value);
  } else {
    json[name] = *value;
  }
}

Json ToJson(const NotTold& one) {
  Json json = {{"what", one.what}, {"why", one.why}};
  if (!one.command.empty()) json["command"] = one.command;
  return json;
}

Json ToJson(const Recorded& recorded) {
  Json json = {{"id", recorded.id}, {"device", recorded.device_name}, {"gpus", recorded.gpus}};
  if (!recorded.refusal.empty()) json["refusal"] = recorded.refusal;
  if (recorded.step_ns <= 0) return json;
  json["step_ns"] = recorded.step_ns;
  if (recorded.batch > 0) json["batch"] = recorded.batch;
  if (recorded.cores.logical > 0) json["cores"] = recorded.cores.logical;
  if (recorded.cores.threads_per_core > 0) json["threads_per_core"] = recorded.cores.threads_per_core;
  if (recorded.loader) json["workers"] = recorded.loaded_by;
  if (recorded.gradient_bytes > 0) json["gradient_bytes"] = recorded.gradient_bytes;
  AddIf(json, "device_memory_bytes", recorded.device_memory_bytes);
  AddIf(json, "read_bytes_per_sample", recorded.read_bytes_per_sample);
  AddIf(json, "epoch_samples", recorded.epoch_samples);
  AddIf(json, "run_samples", recorded.run_samples);
  return json;
}

void AddMachine(const Machine& machine, Json& json) {
  json["machine"] = machine.name;
  if (!machine.source.empty()) json["price_source"] = machine.source;
  if (!machine.date.empty()) json["price_date"] = machine.date;
}

void AddEstimate(const Estimate& estimate, bool counted, Json& json) {
  json["binds"] = Name(estimate.binds);
  json[counted ? "samples_per_s" : "steps_per_s"] = ToJson(estimate.per_s);
  json["step_ns"] =
      ToJson(Range{estimate.step.hopeful_ns, estimate.step.expected_ns, estimate.step.cautious_ns});
  if (estimate.workers > 0) json["workers"] = estimate.workers;
  if (estimate.device_ns.expected > 0) json["device_ns"] = ToJson(estimate.device_ns);
  if (!estimate.classes.empty()) json["classes"] = Json::array();
  for (const replay::ClassTime& time : estimate.classes) {
    Json one = ToJson(Range{time.then.hopeful_ns, time.then.expected_ns, time.then.cautious_ns});
    one["class"] = record::Name(time.lane);
    one["recorded"] = time.now_ns;
    json["classes"].push_back(std::move(one));
  }
  AddIf(json, "cores_needed", estimate.cores_needed);
  AddIf(json, "host_bytes_needed", estimate.host_bytes_needed);
  AddIf(json, "read_bytes_per_s", estimate.read_bytes_per_s);
}

Json ToJson(const Row& row, const Plan& plan) {
  const Estimate& estimate = row.estimate;
  Json json = {{"name", NameOf(row)},
               {"device", estimate.setup.device_name},
               {"gpus", estimate.setup.gpus},
               {"recording", row.recording},
               {"measured", row.measured}};
  if (estimate.cores.logical > 0) json["cores"] = estimate.cores.logical;
  if (estimate.setup.machine) AddMachine(*estimate.setup.machine, json);
  AddIf(json, "memory_filled", estimate.memory_filled);
  if (!estimate.why_not.empty()) {
    json["why_not"] = estimate.why_not;
    return json;
  }
  AddEstimate(estimate, plan.recorded[row.recording].batch > 0, json);
  AddIf(json, "per_hour", row.per_hour);
  AddIf(json, plan.recorded[row.recording].batch > 0 ? "per_million_samples" : "per_thousand_steps",
        row.per_unit);
  AddIf(json, "per_epoch", row.per_epoch);
  AddIf(json, "per_run", row.per_run);
  return json;
}

}  // namespace

Json ToJson(const Plan& plan, const Request& request) {
  Json json = {{"schema", "fullbore.plan/1"},
               {"recordings", Json::array()},
               {"rows", Json::array()},
               {"sentences", Sentences(plan, request)},
               {"not_told", Json::array()}};
  if (!plan.currency.empty()) json["currency"] = plan.currency;
  for (const Recorded& recorded : plan.recorded) json["recordings"].push_back(ToJson(recorded));
  for (const Row& row : plan.rows) json["rows"].push_back(ToJson(row, plan));
  for (const NotTold& one : plan.not_told) json["not_told"].push_back(ToJson(one));
  if (!plan.choice) return json;
  json["choice"] = {{"row", plan.choice->row}, {"sure", plan.choice->sure}};
  AddIf(json["choice"], "versus", plan.choice->versus);
  AddIf(json["choice"], "larger_batch", plan.choice->larger_batch);
  return json;
}

}  // namespace fullbore::plan
