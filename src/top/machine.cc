#include "top/machine.h"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/fd.h"
#include "base/text.h"
#include "measure/probe/process/process_stat.h"

namespace fullbore::top {

using record::Metric;

namespace {

constexpr size_t kProcesses = 30;  // by CPU, and as many by memory

std::string LabelOf(const record::SeriesKey& key, const char* name) {
  const auto found = key.labels.find(name);
  return found == key.labels.end() ? "" : found->second;
}

}  // namespace

class MachineReader::LastReadings : public probe::Sink {
 public:
  void Read(const record::SeriesKey& key, int64_t, double value) override { now[key] = value; }
  void Say(record::Severity, std::string_view, std::string_view) override {}
  void SetMachineFact(std::string_view key, std::string_view value) override {
    facts[std::string(key)] = value;
  }

  std::optional<double> Of(Metric metric) const {
    for (const auto& [key, value] : now) {
      if (IsOf(key, metric)) return value;
    }
    return std::nullopt;
  }
  // Calls use(label, value) for each object of the metric.
  template <typename Use>
  void Each(Metric metric, const char* label, Use use) const {
    for (const auto& [key, value] : now) {
      if (IsOf(key, metric)) use(LabelOf(key, label), value);
    }
  }
  std::string Fact(const std::string& name) const {
    const auto found = facts.find(name);
    return found == facts.end() ? "" : found->second;
  }

  std::map<record::SeriesKey, double> now;  // what is no longer read is no longer shown
  std::map<std::string, std::string> facts;
};

MachineReader::MachineReader(const std::string& root)
    : proc_(root + "/proc"),
      probes_(probe::MakeProbes({root, 0, "", false})),
      last_(std::make_unique<LastReadings>()) {}

MachineReader::~MachineReader() = default;

namespace {

template <typename Readings>
std::vector<Device> DevicesOf(const Readings& last) {
  std::map<std::string, Device> devices;
  const auto fill = [&](Metric metric, std::optional<double> Device::*member) {
    last.Each(metric, "gpu", [&](const std::string& gpu, double value) { devices[gpu].*member = value; });
  };
  fill(Metric::kGpuUtilization, &Device::utilization);
  fill(Metric::kGpuSmActive, &Device::sm_active);
  fill(Metric::kGpuTensorActive, &Device::tensor_active);
  fill(Metric::kGpuMemoryUsed, &Device::memory_used);
  fill(Metric::kGpuMemoryTotal, &Device::memory_total);
  fill(Metric::kGpuPower, &Device::power_w);
  fill(Metric::kGpuPowerLimit, &Device::power_limit_w);
  fill(Metric::kGpuSmClock, &Device::clock_hz);
  fill(Metric::kGpuTemperature, &Device::temperature_c);
  fill(Metric::kGpuThrottlePower, &Device::throttle_power);
  fill(Metric::kGpuThrottleThermal, &Device::throttle_thermal);
  std::vector<Device> all;
  for (auto& [number, device] : devices) {
    device.number = number;
    device.name = last.Fact("gpu" + number);
    all.push_back(std::move(device));
  }
  std::ranges::stable_sort(all, {}, [](const Device& d) { return ParseInt(d.number).value_or(1 << 20); });
  return all;
}

template <typename Readings>
std::vector<Flow> FlowsOf(const Readings& last, const char* label, Metric in, Metric out,
                          std::optional<Metric> busy) {
  std::map<std::string, Flow> flows;
  last.Each(in, label, [&](const std::string& name, double value) { flows[name].in = value; });
  last.Each(out, label, [&](const std::string& name, double value) { flows[name].out = value; });
  if (busy) last.Each(*busy, label, [&](const std::string& name, double value) { flows[name].busy = value; });
  std::vector<Flow> all;
  for (auto& [name, flow] : flows) {
    flow.name = name;
    all.push_back(std::move(flow));
  }
  return all;
}

}  // namespace

Machine MachineReader::Read(int64_t now_ns) {
  last_->now.clear();
  for (const auto& probe : probes_.probes) probe->Sample(now_ns, *last_);
  const LastReadings& last = *last_;
  Machine m;
  m.hostname = last.Fact("hostname");
  m.cpu_model = last.Fact("cpu_model");
  m.cores = ParseDouble(last.Fact("cores"));
  m.cpu = last.Of(Metric::kCpuUtilization);
  m.iowait = last.Of(Metric::kCpuIowait);
  m.load1 = last.Of(Metric::kLoad1);
  m.memory_used = last.Of(Metric::kMemoryUsed);
  m.memory_total = last.Of(Metric::kMemoryTotal);
  m.swap_used = last.Of(Metric::kSwapUsed);
  m.shm_used = last.Of(Metric::kShmUsed);
  m.shm_total = last.Of(Metric::kShmTotal);
  m.psi_cpu = last.Of(Metric::kPsiCpuSome);
  m.psi_io = last.Of(Metric::kPsiIoSome);
  m.psi_memory = last.Of(Metric::kPsiMemorySome);
  std::map<int64_t, double> cores;
  last.Each(Metric::kCpuCoreUtilization, "cpu",
            [&](const std::string& cpu, double value) { cores[ParseInt(cpu).value_or(0)] = value; });
  for (const auto& [number, value] : cores) m.core_utilization.push_back(value);
  m.devices = DevicesOf(last);
  m.disks = FlowsOf(last, "device", Metric::kDiskRead, Metric::kDiskWrite, Metric::kDiskBusy);
  m.networks = FlowsOf(last, "interface", Metric::kNetReceive, Metric::kNetSend, std::nullopt);
  m.processes = BusiestProcesses(now_ns);
  return m;
}

std::vector<Process> MachineReader::BusiestProcesses(int64_t now_ns) {
  static const double ticks_per_s = static_cast<double>(sysconf(_SC_CLK_TCK));
  static const double page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  std::vector<Process> all;
  std::map<int64_t, Ticks> ticks;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(proc_.c_str()), closedir);
  while (const dirent* entry = directory ? readdir(directory.get()) : nullptr) {
    const auto pid = ParseInt(entry->d_name);
    if (!pid) continue;
    const auto text = ReadFile(fmt::format("{}/{}/stat", proc_, *pid));
    const auto stat = text ? probe::ParseProcessStat(*text) : std::nullopt;
    if (!stat || !stat->alive()) continue;
    const auto before = ticks_.find(*pid);
    Process process;
    process.pid = *pid;
    process.command = stat->name;
    process.threads = stat->threads;
    process.memory = static_cast<double>(stat->resident_pages) * page_bytes;
    if (before != ticks_.end() && before->second.start == stat->start_ticks && now_ns > before->second.t_ns) {
      process.cores = static_cast<double>(stat->cpu_ticks - before->second.cpu) / ticks_per_s /
                      (static_cast<double>(now_ns - before->second.t_ns) / 1e9);
    }
    ticks[*pid] = {stat->cpu_ticks, stat->start_ticks, now_ns};
    if (stat->resident_pages > 0) all.push_back(std::move(process));  // without the kernel's own threads
  }
  ticks_ = std::move(ticks);
  std::set<int64_t> kept;
  const auto keep = [&](auto of) {
    std::ranges::stable_sort(all, std::greater<>(), of);
    for (size_t i = 0; i < std::min(all.size(), kProcesses); ++i) kept.insert(all[i].pid);
  };
  keep([](const Process& p) { return p.cores; });
  keep([](const Process& p) { return p.memory; });
  std::erase_if(all, [&](const Process& process) { return !kept.contains(process.pid); });
  for (Process& process : all) {
    const std::string command = probe::ReadCommandLine(fmt::format("{}/{}", proc_, process.pid));
    if (!command.empty()) process.command = command;
  }
  return all;
}

}  // namespace fullbore::top
