#include "fake_machine.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace fake_nvml {
namespace {

namespace nvml = fullbore::probe::nvml;

// In NVML's units: percent, MiB/s, W, GiB.
constexpr std::pair<const char*, Wave> kWaves[] = {
    {"utilization", {92, 8, 7}},     {"memory_utilization", {40, 10, 7}}, {"graphics_active", {92, 8, 7}},
    {"sm_active", {60, 25, 7}},      {"sm_occupancy", {35, 15, 7}},       {"integer_active", {10, 5, 7}},
    {"tensor_active", {30, 20, 7}},  {"tensor_double", {0, 0, 1}},        {"tensor_half", {30, 20, 7}},
    {"tensor_integer", {0, 0, 1}},   {"dram_active", {45, 20, 5}},        {"fp64_active", {0, 0, 1}},
    {"fp32_active", {12, 6, 7}},     {"fp16_active", {4, 2, 7}},          {"pcie_send", {300, 200, 3}},
    {"pcie_receive", {900, 400, 3}}, {"nvlink_receive", {2000, 1500, 3}}, {"nvlink_send", {2000, 1500, 3}},
    {"power", {520, 120, 7}},        {"memory_used", {61, 2, 60}},        {"sm_clock", {1830, 90, 11}},
    {"temperature", {63, 5, 120}},
};

// Atomic: a thread whose call hangs reads them while a test sets the time of its next machine.
std::atomic<double> set_time = -1;
std::atomic<double> begin_time = 0;

double MachineTime() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::deque<FakeMachine>& Machines() {
  static auto* const machines = new std::deque<FakeMachine>(1);
  return *machines;
}

void AddProcesses(const nlohmann::json& script, FakeGpu& gpu) {
  const nlohmann::json processes = script.value("processes", nlohmann::json::array());
  for (const auto& process : processes) {
    const int64_t pid = process.value("pid", int64_t{-1});
    gpu.processes.push_back({static_cast<uint32_t>(pid < 0 ? getpid() : pid),
                             process.value("memory_gib", 1.0), process.value("sm", 0.0),
                             process.value("mig", UINT32_MAX), process.value("graphics", false),
                             process.value("until", std::numeric_limits<double>::infinity())});
  }
}

FakeGpu& AddGpu(FakeMachine& machine, const nlohmann::json& script) {
  FakeGpu& gpu = machine.gpus.emplace_back();
  gpu.name = script.value("name", "NVIDIA H100 80GB HBM3");
  gpu.memory_gib = script.value("memory_gib", 80.0);
  gpu.gpm = script.value("gpm", true);
  gpu.lost_at = script.value("lost_at", gpu.lost_at);
  gpu.back_at = script.value("back_at", gpu.back_at);
  gpu.hangs_at = script.value("hangs_at", gpu.hangs_at);
  gpu.errors = script.value("errors", gpu.errors);
  gpu.gpm_nan = script.value("gpm_nan", gpu.gpm_nan);
  if (script.contains("xid_at"))
    gpu.xid = {script["xid_at"][0].get<double>(), script["xid_at"][1].get<uint64_t>()};
  AddProcesses(script, gpu);
  gpu.reasons = script.value("reasons", gpu.reasons);
  gpu.slowed = script.value("slowed", gpu.slowed);
  gpu.waves = {std::begin(kWaves), std::end(kWaves)};
  const nlohmann::json waves = script.value("waves", nlohmann::json::object());
  for (const auto& [name, wave] : waves.items()) {
    gpu.waves[name] = {wave[0].get<double>(), wave[1].get<double>(), wave[2].get<double>()};
  }
  return gpu;
}

void AddInstance(FakeMachine& machine, const nlohmann::json& script, uint32_t id, FakeGpu& gpu) {
  FakeGpu& instance = AddGpu(machine, script);
  instance.parent = &gpu;
  instance.index = gpu.index;
  instance.gpu_instance = id;
  instance.memory_gib = gpu.memory_gib / 8;
  std::erase_if(instance.processes, [id](const Process& process) {
    return process.gpu_instance != UINT32_MAX && process.gpu_instance != id;
  });
  gpu.instances.push_back(&instance);
}

}  // namespace

FakeMachine& Machine() { return Machines().back(); }

void SetTime(double seconds) { set_time = seconds; }

double Now() {
  const double seconds = set_time;
  return seconds >= 0 ? seconds : MachineTime() - begin_time;
}

void Load(const char* path) {
  FakeMachine& machine = Machines().emplace_back();
  std::ifstream file(path);
  const nlohmann::json script = nlohmann::json::parse(file);
  machine.init = script.value("init", nvml::kSuccess);
  machine.driver = script.value("driver", machine.driver);
  machine.cuda = script.value("cuda", machine.cuda);
  const nlohmann::json gpus = script.value("gpus", nlohmann::json::array());
  for (const auto& gpu_script : gpus) {
    for (int i = gpu_script.value("count", 1); i > 0; --i) {
      FakeGpu& gpu = AddGpu(machine, gpu_script);
      gpu.index = static_cast<uint32_t>(machine.whole.size());
      machine.whole.push_back(&gpu);
      for (const uint32_t id : gpu_script.value("mig", std::vector<uint32_t>()))
        AddInstance(machine, gpu_script, id, gpu);
    }
  }
  begin_time = MachineTime();
}

double At(const FakeGpu& gpu, const char* name, double time) {
  const Wave& wave = gpu.waves.at(name);
  return wave.mean + wave.amplitude * std::sin(2 * M_PI * time / wave.period_s + gpu.index);
}

double SumAt(const FakeGpu& gpu, const char* name, double time) {
  const Wave& wave = gpu.waves.at(name);
  const double turn = 2 * M_PI / wave.period_s;
  return wave.mean * time + wave.amplitude / turn * (std::cos(gpu.index) - std::cos(turn * time + gpu.index));
}

}  // namespace fake_nvml
