#include "fleet/job_json.h"

namespace fullbore::fleet {

namespace {

using Json = nlohmann::ordered_json;

Json BarJson(const Bar& bar) {
  Json json = {{"kind", Name(bar.kind)}};
  if (!bar.cause.empty()) json["cause"] = bar.cause;
  json["device_ns"] = bar.device_ns;
  json["runs"] = Json::array();
  for (const Bar::Of& of : bar.of)
    json["runs"].push_back({{"number", of.run + 1}, {"device_ns", of.device_ns}});
  return json;
}

const char* StateOf(const RunAccount& run) {
  return run.cut_off ? "cut off" : run.ended ? "ended" : "running";
}

Json RunJson(const RunAccount& run, size_t number) {
  Json json = {{"number", number},
               {"id", run.id},
               {"path", run.path},
               {"begin_unix_ns", run.begin_unix_ns},
               {"end_unix_ns", run.end_unix_ns},
               {"machines", run.nodes},
               {"devices", run.devices},
               {"given_ns", run.given_ns},
               {"restarts", run.use.restarts},
               {"state", StateOf(run)}};
  if (run.exit_status) json["exit_status"] = *run.exit_status;
  json["lost_unknown"] = run.lost_unknown;
  json["verdict"] = run.verdict;
  return json;
}

Json AllocationJson(const Allocation& allocation) {
  Json json = {{"begin_unix_ns", allocation.begin_unix_ns},
               {"end_unix_ns", allocation.end_unix_ns},
               {"state", allocation.state}};
  if (allocation.devices > 0) json["devices"] = allocation.devices;
  return json;
}

Json UseJson(const Use& use) {
  Json json = Json::object();
  const auto put = [&](const char* name, const auto& value) {
    if (value) json[name] = *value;
  };
  put("cores_given", use.cores_given);
  put("cores_mean", use.cores_mean);
  put("cores_p95", use.cores_p95);
  put("memory_given_bytes", use.memory_given_bytes);
  put("memory_peak_bytes", use.memory_peak_bytes);
  put("time_given_ns", use.time_given_ns);
  put("time_used_ns", use.time_used_ns);
  put("gpus_given", use.gpus_given);
  put("gpus_used", use.gpus_used);
  return json;
}

}  // namespace

Json ToJson(const Job& job) {
  Json json = {{"schema", "fullbore.fleet_job/1"},
               {"job", job.id},
               {"name", job.name},
               {"user", job.user},
               {"account", job.account},
               {"partition", job.partition},
               {"device", job.device},
               {"begin_unix_ns", job.begin_unix_ns},
               {"end_unix_ns", job.end_unix_ns},
               {"restarts", job.restarts},
               {"goes_on", job.goes_on()},
               {"paid_ns", job.paid_ns},
               {"useful_ns", job.useful_ns},
               {"bars", Json::array()},
               {"runs", Json::array()},
               {"gaps", Json::array()},
               {"use", UseJson(job.use)},
               {"notes", NotesOn(job)}};
  for (const Bar& bar : job.bars) json["bars"].push_back(BarJson(bar));
  for (size_t i = 0; i < job.runs.size(); ++i) json["runs"].push_back(RunJson(job.runs[i], i + 1));
  for (const Gap& gap : job.gaps) {
    Json each = {{"begin_unix_ns", gap.begin_unix_ns}, {"end_unix_ns", gap.end_unix_ns}, {"paid", gap.paid}};
    if (gap.before < job.runs.size()) each["before_run"] = gap.before + 1;
    json["gaps"].push_back(std::move(each));
  }
  for (const Allocation& each : job.allocations) json["allocations"].push_back(AllocationJson(each));
  return json;
}

}  // namespace fullbore::fleet
