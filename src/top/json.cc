#include "top/json.h"

#include <nlohmann/json.hpp>

#include "base/printable.h"

namespace fullbore::top {

using Json = nlohmann::ordered_json;

namespace {

void Put(Json& object, const char* key, const std::optional<double>& value) {
  if (value) object[key] = *value;
}

Json Of(const Device& d) {
  Json json = {{"gpu", d.number}, {"name", d.name}};
  Put(json, "utilization", d.utilization);
  Put(json, "sm_active", d.sm_active);
  Put(json, "tensor_active", d.tensor_active);
  Put(json, "memory_used", d.memory_used);
  Put(json, "memory_total", d.memory_total);
  Put(json, "power_w", d.power_w);
  Put(json, "power_limit_w", d.power_limit_w);
  Put(json, "clock_hz", d.clock_hz);
  Put(json, "temperature_c", d.temperature_c);
  Put(json, "throttle_power", d.throttle_power);
  Put(json, "throttle_thermal", d.throttle_thermal);
  return json;
}

Json Of(const Flow& flow, const char* in, const char* out) {
  Json json = {{"name", flow.name}, {in, flow.in}, {out, flow.out}};
  Put(json, "busy", flow.busy);
  return json;
}

Json Of(const Machine& m) {
  Json json = {{"hostname", m.hostname}};
  Put(json, "cores", m.cores);
  Put(json, "cpu_utilization", m.cpu);
  Put(json, "cpu_iowait", m.iowait);
  Put(json, "load1", m.load1);
  Put(json, "memory_used", m.memory_used);
  Put(json, "memory_total", m.memory_total);
  Put(json, "swap_used", m.swap_used);
  Put(json, "psi_cpu_some", m.psi_cpu);
  Put(json, "psi_io_some", m.psi_io);
  Put(json, "psi_memory_some", m.psi_memory);
  json["core_utilization"] = m.core_utilization;
  for (const char* list : {"devices", "disks", "networks", "processes"}) json[list] = Json::array();
  for (const Device& device : m.devices) json["devices"].push_back(Of(device));
  for (const Flow& disk : m.disks) json["disks"].push_back(Of(disk, "read", "write"));
  for (const Flow& net : m.networks) json["networks"].push_back(Of(net, "receive", "send"));
  for (const Process& p : m.processes)
    json["processes"].push_back({{"pid", p.pid},
                                 {"command", p.command},
                                 {"cores", p.cores},
                                 {"memory", p.memory},
                                 {"threads", p.threads}});
  return json;
}

Json Of(const Run& run) {
  Json json = {{"name", run.name},
               {"path", run.path},
               {"ranks", run.ranks},
               {"steps", run.steps},
               {"running_ns", run.running_ns}};
  if (run.step_ns > 0) json["mean_step_ns"] = run.step_ns;
  Put(json, "samples_per_s", run.samples_per_s);
  Put(json, "tokens_per_s", run.tokens_per_s);
  Put(json, "useful_tokens_per_s", run.useful_tokens_per_s);
  Put(json, "model_flops_per_s", run.flops_per_s);
  Put(json, "mfu", run.mfu);
  json["shares"] = run.shares;
  json["roles"] = Json::array();
  for (const RoleUse& role : run.roles)
    json["roles"].push_back(
        {{"role", role.role}, {"count", role.count}, {"cores", role.cores}, {"memory", role.memory}});
  json["findings"] = Json::array();
  for (const Finding& f : run.findings)
    json["findings"].push_back(
        {{"id", f.id}, {"title", f.title}, {"change", f.change}, {"critical", f.critical}});
  return json;
}

}  // namespace

std::string ToJsonLine(const State& state, int64_t wall_ns) {
  Json json = {{"schema", "fullbore.top/1"},
               {"unix_ns", wall_ns},
               {"machine", Of(state.machine)},
               {"runs", Json::array()}};
  for (const Run& run : state.runs) json["runs"].push_back(Of(run));
  return PrintableJson(json.dump(-1, ' ', false, Json::error_handler_t::replace)) + "\n";
}

}  // namespace fullbore::top
