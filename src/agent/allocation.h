// Which devices a scheduler gave to a job or a container, whether or not a process uses them. Pure.
//
// What names them differs: Slurm counts as the kernel does (N of /dev/nvidiaN), container engines as NVML does, and
// both may name them by UUID. CUDA_VISIBLE_DEVICES counts only what is visible already: its numbers say nothing here.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace fullbore::agent {

struct Allocation {
  std::set<uint32_t> minor_numbers, indexes;
  std::set<std::string> uuids;  // or their first characters, as CUDA allows

  bool empty() const { return minor_numbers.empty() && indexes.empty() && uuids.empty(); }
};

// What is told apart: as nvml::Gpu has it. An instance (MIG) is given by its UUID alone.
struct Named {
  uint32_t index = 0;
  std::optional<uint32_t> minor_number;
  std::string uuid;
  bool instance = false;
};
bool Includes(const Allocation& allocation, const Named& device);

// From SLURM_JOB_GPUS, else SLURM_STEP_GPUS, else NVIDIA_VISIBLE_DEVICES and the UUIDs in CUDA_VISIBLE_DEVICES.
// `environment`: all of /proc/PID/environ; nothing else of it is looked at. "all", which images say by themselves, is
// no allocation.
Allocation AllocationInEnvironment(std::string_view environment);

// From devices.list of a group of the old hierarchies: "c 195:0 rwm". Empty where everything is allowed.
Allocation AllocationInDevicesList(std::string_view list);

}  // namespace fullbore::agent
