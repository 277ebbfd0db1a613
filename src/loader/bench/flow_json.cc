#include "loader/bench/flow_json.h"

namespace fullbore::loader::bench {

using Json = nlohmann::ordered_json;

namespace {

Json PointsOf(const Flow& flow) {
  Json points = Json::array();
  for (const Point& point : flow.points) {
    Json stages = Json::object();
    for (const StageCost& stage : point.stages) stages[stage.name] = stage.us_per_sample;
    points.push_back({{"threads", point.threads},
                      {"samples_per_s", point.samples_per_s},
                      {"us_per_sample", std::move(stages)}});
  }
  return points;
}

Json ReadingsOf(const Flow& flow) {
  Json readings = Json::array();
  for (const Reading& reading : flow.readings) {
    readings.push_back({{"readers", reading.readers},
                        {"cold", reading.cold},
                        {"samples_per_s", reading.samples_per_s},
                        {"bytes_per_s", reading.bytes_per_s}});
  }
  return readings;
}

Json DemandOf(const Demand& demand) {
  Json json = {{"samples_per_s", demand.samples_per_s}, {"at_most", demand.at_most}, {"text", demand.text}};
  if (demand.threads) json["threads"] = *demand.threads;
  if (demand.machines_cores) json["cores_needed"] = *demand.machines_cores;
  return json;
}

}  // namespace

Json ToJson(const Flow& flow, double wanted_samples_per_s) {
  Json json = {{"schema", "fullbore.loader_bench/1"},
               {"path", flow.path},
               {"samples", flow.samples},
               {"used_samples", flow.used_samples},
               {"bytes_per_sample", flow.bytes_per_sample},
               {"row", flow.row},
               {"batch_size", flow.batch_size},
               {"cores", flow.cores},
               {"interrupted", flow.interrupted},
               {"points", PointsOf(flow)},
               {"readings", ReadingsOf(flow)}};
  if (!flow.torch.empty()) {
    json["torch"] = {{"versions", flow.torch_versions}, {"points", Json::array()}};
    for (const TorchPoint& point : flow.torch) {
      json["torch"]["points"].push_back({{"workers", point.workers}, {"samples_per_s", point.samples_per_s}});
    }
  }
  if (const auto verdict = Judge(flow)) {
    json["verdict"] = {
        {"binds", NameOf(verdict->pipe)}, {"text", verdict->text}, {"next_step", verdict->next_step}};
  }
  if (wanted_samples_per_s > 0 && !flow.points.empty()) {
    json["demand"] = DemandOf(ThreadsFor(flow, wanted_samples_per_s));
  }
  json["notes"] = flow.notes;
  return json;
}

}  // namespace fullbore::loader::bench
