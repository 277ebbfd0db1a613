// What `top` shows, as plain values: the machine at this moment, and the runs that are being recorded. Unknown is
// absent.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fullbore::top {

struct Device {
  std::string number, name;                                     // "0", "NVIDIA H100 80GB HBM3"
  std::optional<double> utilization, sm_active, tensor_active;  // ratios
  std::optional<double> memory_used, memory_total;              // bytes
  std::optional<double> power_w, power_limit_w, clock_hz, temperature_c;
  std::optional<double> throttle_power, throttle_thermal;  // of the last second, ratios
};

struct Flow {  // of a disk or a network interface, bytes/s
  std::string name;
  double in = 0, out = 0;
  std::optional<double> busy;
};

struct Process {
  int64_t pid = 0;
  std::string command;
  double cores = 0, memory = 0;
  int64_t threads = 0;
};

struct Machine {
  std::string hostname, cpu_model;
  std::optional<double> cores, cpu, iowait, load1, memory_used, memory_total, swap_used, shm_used,
      shm_total;  // cpu, iowait: ratios
  std::optional<double> psi_cpu, psi_io, psi_memory;
  std::vector<double> core_utilization;  // by number
  std::vector<Device> devices;
  std::vector<Flow> disks, networks;
  std::vector<Process> processes;  // in no order
};

struct RoleUse {  // of one role of a run's processes
  std::string role;
  double count = 0, cores = 0, memory = 0;
};

struct Finding {
  std::string id, title, change;
  bool critical = false;
};

struct Run {
  std::string name, path, directory;
  int64_t ranks = 0, steps = 0, running_ns = 0;
  double step_ns = 0;  // the mean of the last minute; 0: no step yet
  std::optional<double> samples_per_s, tokens_per_s, useful_tokens_per_s;
  std::optional<double> flops_per_s, mfu;  // of the first rank's model
  std::string work;                        // tokens, and what the model computes, in words
  std::map<std::string, double> shares;    // of the last minute
  std::vector<double> step_times_ns;       // over the last minute
  std::vector<std::map<std::string, double>> shares_over_time;  // likewise
  std::vector<RoleUse> roles;
  std::string verdict;
  bool critical = false;
  std::vector<Finding> findings;  // since the start, else of the last minute
};

struct State {
  Machine machine;
  std::vector<Run> runs;  // newest first
};

}  // namespace fullbore::top
