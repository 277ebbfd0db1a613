#include "agent/page.h"

#include <algorithm>

namespace fullbore::agent {

using record::OpenMetrics;

namespace {

constexpr double kNsPerS = 1e9;

Labels Joined(Labels labels, const Labels& more) {
  labels.insert(labels.end(), more.begin(), more.end());
  return labels;
}

void AddSource(OpenMetrics& page, const char* source, bool up) {
  page.AddGauge("fullbore_agent_source_up", "",
                "Whether a source of readings answers: nvml, 0 where it is missing or hangs.",
                {{"source", source}}, up ? 1 : 0);
}

void AddSelf(OpenMetrics& page, const NodeView& node) {
  page.Add("fullbore_agent", "info", "", "The agent.", {{"version", node.self.version}}, 1);
  page.Add("process_start_time_seconds", "gauge", "seconds", "When the agent was started, since 1970.", {},
           node.self.start_unix_s);
  if (node.self.cpu_s)
    page.Add("process_cpu_seconds", "counter", "seconds", "Processor time of the agent.", {},
             *node.self.cpu_s);
  if (node.self.resident_bytes)
    page.AddGauge("process_resident_memory_bytes", "bytes", "Memory of the agent.", {},
                  *node.self.resident_bytes);
  const bool answers = node.devices && node.devices->has_nvml && !IsStale(node);
  AddSource(page, "host", !node.readings.empty());
  AddSource(page, "nvml", answers);
  if (!node.devices) return;
  if (node.devices->has_nvml)
    page.AddGauge("fullbore_agent_nvml_age_seconds", "seconds", "Since NVML last answered.", {},
                  static_cast<double>(node.now_ns - node.devices->t_ns) / kNsPerS);
  const auto add_sight = [&](const char* what, const std::optional<bool>& sees) {
    if (sees)
      page.AddGauge(
          "fullbore_agent_sees", "",
          "What the agent may read of others: processes (whose they are), environments (which devices a "
          "job was given before it uses them).",
          {{"what", what}}, *sees ? 1 : 0);
  };
  add_sight("processes", node.devices->sight.processes);
  add_sight("environments", node.devices->sight.environments);
  if (answers)
    page.AddGauge("fullbore_agent_unseen_processes", "", "Processes on devices whose owner cannot be seen.",
                  {}, static_cast<double>(node.devices->unseen_processes));
}

void AddHold(OpenMetrics& page, const Labels& labels, const Hold& hold, bool known) {
  for (size_t i = 0; i < kStates; ++i)
    page.Add(
        "fullbore_gpu_holder_seconds", "counter", "seconds",
        "How long a job, pod or user has held a device, by what the device did; equal parts where they share it.",
        Joined(labels, {{"state", Name(static_cast<State>(i))}}), hold.seconds[i]);
  if (!known) return;
  const auto add = [&](const char* name, const char* unit, const char* help, double value) {
    page.AddGauge(name, unit, help, labels, value);
  };
  add("fullbore_gpu_holder_held_seconds", "seconds",
      "For how long the device has been held, as far as was seen.",
      static_cast<double>(hold.held_ns) / kNsPerS);
  if (hold.idle_ns)
    add("fullbore_gpu_holder_idle_seconds", "seconds",
        "The idle tail: for how long the device has done nothing for who holds it; 0 while it works.",
        static_cast<double>(*hold.idle_ns) / kNsPerS);
  add("fullbore_gpu_holder_without_process_seconds", "seconds",
      "For how long the device has been held without any process; 0 while there is one.",
      static_cast<double>(hold.without_process_ns) / kNsPerS);
  add("fullbore_gpu_holder_processes", "", "Processes on the device.", static_cast<double>(hold.processes));
  if (hold.memory_bytes)
    add("fullbore_gpu_holder_memory_bytes", "bytes", "Memory of the device that they hold.",
        static_cast<double>(*hold.memory_bytes));
  add("fullbore_gpu_holder_worked", "", "1 if the device has done anything for who holds it.",
      hold.worked ? 1 : 0);
}

void AddDevice(OpenMetrics& page, const ShownDevice& device) {
  page.Add("fullbore_gpu", "info", "", "A GPU, or an instance of one (MIG).",
           Joined(device.labels, {{"name", device.name}, {"uuid", device.uuid}}), 1);
  page.AddGauge("fullbore_gpu_lost", "", "1 while the GPU does not answer.", device.labels,
                device.lost ? 1 : 0);
  for (const ShownHold& held : device.holds)
    AddHold(page, Joined(device.labels, held.labels), held.hold, device.users_known);
  if (!device.users_known) return;
  page.AddGauge(
      "fullbore_gpu_holders", "",
      "Jobs, pods, containers and users that hold the device: 0 where it is free, more than 1 where it is "
      "shared.",
      device.labels, static_cast<double>(device.holds.size()));
  for (const Strays& strays : device.strays)
    page.AddGauge(
        "fullbore_gpu_stray_processes", "",
        "Processes on the device that outlived their job's step, or belong to no job while the device's "
        "others do.",
        Joined(device.labels, {{"user", strays.user}, {"reason", strays.reason}}),
        static_cast<double>(strays.processes));
}

void AddReadings(OpenMetrics& page, const std::map<record::SeriesKey, double>& readings) {
  const auto all = record::AllMetrics();
  for (const auto& [key, value] : readings) {
    const auto info = std::ranges::find(all, key.name, &record::MetricInfo::name);
    if (info == all.end() || info->unit == "bitmask") continue;
    page.AddGauge(record::PrometheusName(*info), std::string(record::PrometheusUnit(info->unit)),
                  "The newest reading; see docs/metrics.md.", Labels(key.labels.begin(), key.labels.end()),
                  value);
  }
}

void AddNode(OpenMetrics& page, const NodeView& node) {
  Labels labels;
  const auto add = [&](const std::map<std::string, std::string>& facts, const char* fact) {
    if (const auto found = facts.find(fact); found != facts.end()) labels.emplace_back(fact, found->second);
  };
  for (const char* fact : {"hostname", "kernel", "cpu_model", "cores"}) add(node.facts, fact);
  if (node.devices) {
    for (const char* fact : {"driver_version", "cuda_driver_version"}) add(node.devices->facts, fact);
  }
  page.Add("fullbore_node", "info", "", "The node.", labels, 1);
}

void AddDevices(OpenMetrics& page, const DeviceView& view) {
  for (const ShownDevice& device : view.devices) AddDevice(page, device);
  for (const auto& [which, count] : view.xids)
    page.Add("fullbore_gpu_xids", "counter", "", "Xid errors since the agent was started.",
             {{"gpu", which.first}, {"xid", std::to_string(which.second)}}, static_cast<double>(count));
  AddReadings(page, view.readings);
}

}  // namespace

bool IsStale(const NodeView& node) { return node.devices && node.now_ns - node.devices->t_ns > kStaleNs; }

// What must not be left out comes first.
std::string MetricsPage(const NodeView& node, size_t most_series) {
  OpenMetrics page(most_series - 1);
  AddSelf(page, node);
  AddNode(page, node);
  if (node.devices && !IsStale(node)) AddDevices(page, *node.devices);
  AddReadings(page, node.readings);
  page.AddCut("fullbore_cut_series", "Series that are left out here, beyond the first ones.");
  return page.Text();
}

}  // namespace fullbore::agent
