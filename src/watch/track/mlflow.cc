#include "watch/track/mlflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/secrets.h"
#include "record/metrics.h"

namespace fullbore::watch {

namespace {

using Json = nlohmann::json;
using record::Metric;

constexpr size_t kMostMetrics = 1000;  // of one log-batch, says MLflow
constexpr char kRunTag[] = "fullbore.run_id";

std::string WithoutSlash(std::string uri) {
  while (uri.ends_with('/')) uri.pop_back();
  return uri;
}

std::string Base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string encoded;
  for (size_t i = 0; i < text.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (i + j < text.size() ? static_cast<unsigned char>(text[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j) encoded += i + j <= text.size() ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
  }
  return encoded;
}

std::vector<std::string> WhoWeAre() {
  if (const std::string token = Variable("MLFLOW_TRACKING_TOKEN"); !token.empty())
    return {"Authorization: Bearer " + token};
  const std::string user = Variable("MLFLOW_TRACKING_USERNAME");
  if (user.empty()) return {};
  return {"Authorization: Basic " + Base64(user + ":" + Variable("MLFLOW_TRACKING_PASSWORD"))};
}

// MLflow's names for what it measures itself ("*" is the number of the device), and what they are in.
struct Counterpart {
  Metric metric;
  std::string_view name;
  double scale;
  std::optional<Metric> of_all = {};  // then it is a part of this, in percent
};
constexpr double kPercent = 100, kMegabytes = 1e-6;
const std::array kCounterparts = {
    Counterpart{Metric::kCpuUtilization, "cpu_utilization_percentage", kPercent},
    Counterpart{Metric::kMemoryUsed, "system_memory_usage_megabytes", kMegabytes},
    Counterpart{Metric::kMemoryUsed, "system_memory_usage_percentage", kPercent, Metric::kMemoryTotal},
    Counterpart{Metric::kGpuUtilization, "gpu_*_utilization_percentage", kPercent},
    Counterpart{Metric::kGpuMemoryUsed, "gpu_*_memory_usage_megabytes", kMegabytes},
    Counterpart{Metric::kGpuMemoryUsed, "gpu_*_memory_usage_percentage", kPercent, Metric::kGpuMemoryTotal},
    Counterpart{Metric::kGpuPower, "gpu_*_power_usage_watts", 1},
    Counterpart{Metric::kGpuPower, "gpu_*_power_usage_percentage", kPercent, Metric::kGpuPowerLimit},
};

std::string NameFor(const Counterpart& counterpart, const record::SeriesKey& key) {
  std::string name = "system/" + std::string(counterpart.name);
  const auto device = key.labels.find("gpu");
  const size_t star = name.find('*');
  return star == std::string::npos || device == key.labels.end() ? name
                                                                 : name.replace(star, 1, device->second);
}

// The reading of the same object in the same sample.
std::optional<double> Beside(const Sample& sample, Metric metric, const record::Labels& labels) {
  const auto found = std::ranges::find_if(sample.values, [&](const Value& value) {
    return record::IsOf(value.key, metric) && value.key.labels == labels;
  });
  return found == sample.values.end() ? std::nullopt : std::optional(found->value);
}

// The server's own words where it has some: {"error_code": ..., "message": ...}.
void Explain(Attempt& attempt) {
  const auto said = Json::parse(attempt.answer, nullptr, /*allow_exceptions=*/false);
  if (attempt.end == Attempt::End::kDelivered || !said.is_object() || !said.contains("message")) return;
  if (said["message"].is_string())
    attempt.problem += ": " + said["message"].get<std::string>().substr(0, 200);
}

std::string TextAt(const Json& json, const char* pointer) {
  const Json::json_pointer at(pointer);
  return json.contains(at) && json[at].is_string() ? json[at].get<std::string>() : "";
}

Attempt NotUnderstood(const char* what) {
  return {Attempt::End::kRefused, fmt::format("its answer names no {}: is it an MLflow server?", what)};
}

Json Tag(const std::string& key, const std::string& value) { return {{"key", key}, {"value", value}}; }

}  // namespace

Json MlflowMetrics(const Sample& sample) {
  Json metrics = Json::array();
  const auto add = [&](const std::string& name, double value) {
    metrics.push_back(
        {{"key", name}, {"value", value}, {"timestamp", sample.wall_ns / kNsPerMs}, {"step", sample.step}});
  };
  for (const auto& [key, value] : sample.values) {
    bool has_name = false;
    for (const Counterpart& counterpart : kCounterparts) {
      if (!record::IsOf(key, counterpart.metric)) continue;
      const auto all = counterpart.of_all ? Beside(sample, *counterpart.of_all, key.labels) : 1.0;
      if (all && *all > 0) add(NameFor(counterpart, key), value * counterpart.scale / *all);
      has_name = true;
    }
    if (!has_name) add(NameOf(key), value);
  }
  return metrics;
}

Mlflow::Mlflow(std::string uri) : uri_(WithoutSlash(std::move(uri))), headers_(WhoWeAre()) {}

std::string Mlflow::name() const { return uri_.empty() ? "MLflow" : "MLflow at " + MaskUrl(uri_); }

Attempt Mlflow::Call(const std::string& method, const Json& body, Json* answer) {
  Attempt attempt = Post(uri_ + "/api/2.0/mlflow/" + method,
                         body.dump(-1, ' ', false, Json::error_handler_t::replace), stop_, headers_);
  Explain(attempt);
  if (answer) *answer = Json::parse(attempt.answer, nullptr, /*allow_exceptions=*/false);
  return attempt;
}

// As the hook saw it (python/fullbore/hook/own/mlflow.py); on another server than ours it is not meant.
bool Mlflow::FindScriptsRun(const TrackedRun& run) {
  const auto fact = run.facts.find("mlflow_run");
  const auto seen =
      fact == run.facts.end() ? Json() : Json::parse(fact->second, nullptr, /*allow_exceptions=*/false);
  if (const std::string uri = WithoutSlash(TextAt(seen, "/uri")); uri.starts_with("http")) {
    if (uri_.empty() && run.is_live) uri_ = uri;
    if (uri_ == uri) run_id_ = TextAt(seen, "/id");
  }
  if (run_id_.empty()) run_id_ = Variable("MLFLOW_RUN_ID");
  return !run_id_.empty();
}

Attempt Mlflow::FindExperiment() {
  experiment_ = Variable("MLFLOW_EXPERIMENT_ID");
  const std::string name = Variable("MLFLOW_EXPERIMENT_NAME");
  if (experiment_.empty() && name.empty()) experiment_ = "0";  // "Default"
  if (!experiment_.empty()) return {Attempt::End::kDelivered, ""};
  Json answer;
  const std::string quoted = name.find('\'') == std::string::npos ? "'" + name + "'" : "\"" + name + "\"";
  Attempt found = Call("experiments/search", {{"filter", "name = " + quoted}, {"max_results", 1}}, &answer);
  if (found.end != Attempt::End::kDelivered) return found;
  experiment_ = TextAt(answer, "/experiments/0/experiment_id");
  if (!experiment_.empty()) return found;
  Attempt made = Call("experiments/create", {{"name", name}}, &answer);
  experiment_ = TextAt(answer, "/experiment_id");
  return made.end == Attempt::End::kDelivered && experiment_.empty() ? NotUnderstood("experiment") : made;
}

// The one of an earlier export, so that a run is there once; else a new one.
Attempt Mlflow::FindOwnRun(const TrackedRun& run) {
  if (Attempt found = FindExperiment(); found.end != Attempt::End::kDelivered) return found;
  Json answer;
  const std::string filter = fmt::format("tags.`{}` = '{}'", kRunTag, run.id);
  Attempt found =
      Call("runs/search",
           {{"experiment_ids", Json::array({experiment_})}, {"filter", filter}, {"max_results", 1}}, &answer);
  if (found.end != Attempt::End::kDelivered) return found;
  run_id_ = TextAt(answer, "/runs/0/info/run_id");
  if (!run_id_.empty()) return found;
  Attempt made = Call("runs/create",
                      {{"experiment_id", experiment_},
                       {"run_name", run.id},
                       {"start_time", run.wall_begin_ns / kNsPerMs},
                       {"tags", Json::array({Tag(kRunTag, run.id), Tag("mlflow.source.name", run.command)})}},
                      &answer);
  run_id_ = TextAt(answer, "/run/info/run_id");
  return made.end == Attempt::End::kDelivered && run_id_.empty() ? NotUnderstood("run") : made;
}

Attempt Mlflow::Begin(const TrackedRun& run) {
  own_ = !FindScriptsRun(run);
  if (uri_.empty())
    return {
        Attempt::End::kRefused,
        "no server is named, by a script that runs, by mlflow:http://127.0.0.1:5000 or by MLFLOW_TRACKING_URI"};
  if (own_) {
    if (Attempt found = FindOwnRun(run); found.end != Attempt::End::kDelivered) return found;
  }
  Json tags = Json::array({Tag(kRunTag, run.id)});
  if (!run.host.empty()) tags.push_back(Tag("fullbore.host", run.host));
  for (const auto& [key, value] : run.tags) tags.push_back(Tag("fullbore.tag." + key, value));
  return Call("runs/log-batch", {{"run_id", run_id_}, {"tags", tags}});
}

Attempt Mlflow::Send(const std::vector<Sample>& samples) {
  Json metrics = Json::array();
  Attempt attempt{Attempt::End::kDelivered, ""};
  for (size_t i = 0; i < samples.size(); ++i) {
    Json next = MlflowMetrics(samples[i]);
    if (metrics.size() + next.size() > kMostMetrics) {
      attempt =
          Call("runs/log-batch", {{"run_id", run_id_}, {"metrics", std::exchange(metrics, Json::array())}});
      if (attempt.end != Attempt::End::kDelivered) return attempt;
    }
    metrics.insert(metrics.end(), next.begin(), next.end());
  }
  return Call("runs/log-batch", {{"run_id", run_id_}, {"metrics", metrics}});
}

Attempt Mlflow::End(const TrackedRun& run, const Conclusion& conclusion) {
  const Judgement& judgement = conclusion.judgement;
  Json tags = Json::array();
  if (!judgement.finding.empty()) {
    tags.push_back(Tag("fullbore.finding", judgement.finding));
    tags.push_back(Tag("fullbore.verdict", judgement.verdict));
    if (!judgement.change.empty()) tags.push_back(Tag("fullbore.change", judgement.change));
  }
  Attempt attempt = Call("runs/log-batch", {{"run_id", run_id_}, {"tags", tags}});
  if (attempt.end != Attempt::End::kDelivered || !own_) return attempt;
  return Call("runs/update", {{"run_id", run_id_},
                              {"status", conclusion.failed ? "FAILED" : "FINISHED"},
                              {"end_time", run.wall_end_ns / kNsPerMs}});
}

}  // namespace fullbore::watch
