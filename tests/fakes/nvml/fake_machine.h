// The machine that the fake NVML simulates. Its script is JSON:
//   "init"    what nvmlInit returns (18: driver and library versions differ); default 0
//   "driver", "cuda"   "550.54.15", 12040
//   "gpus"    one object per GPU, or per several identical ones with "count":
//     "name", "memory_gib"
//     "gpm"        false: before Hopper
//     "mig"        [1, 2]: gpu instance ids; the GPU itself then has no utilisation
//     "lost_at", "back_at"   seconds after nvmlInit between which every call returns 15
//     "hangs_at"   seconds after nvmlInit from which no call about it returns
//     "errors"     {"nvmlDeviceGetPowerUsage": 3, "gpm:5": 3, "field:186": 3}: what single calls return
//     "gpm_nan"    [5]: GPM metrics that are not a number
//     "xid_at"     [seconds, number]
//     "processes"  [{"pid": 1, "memory_gib": 2, "sm": 90}]; pid -1 is the process that loaded the library;
//                  with "mig": 1 of that instance alone, with "graphics": true one that draws, with
//                  "until": 60 one that ends then
//     "reasons"    why the clocks are lowered: bits of nvmlDeviceGetCurrentClocksEventReasons; default 4
//     "slowed"     {"software_thermal": 0.2}: shares of time, on drivers that count them
//     "waves"      {"tensor_active": [mean, amplitude, period_s]}, see kWaves for the names
//
// Values depend only on time: value(t) = mean + amplitude * sin(2 pi t / period + index). Time is the
// machine's, or whatever was passed to SetTime.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "measure/probe/nvml/nvml_abi.h"

namespace fake_nvml {

struct Wave {
  double mean, amplitude, period_s;
};

struct Process {
  uint32_t pid;
  double memory_gib, sm_percent;
  uint32_t gpu_instance;  // UINT32_MAX: of no instance in particular
  bool graphics;
  double until;
};

struct FakeGpu {
  uint32_t index = 0;
  FakeGpu* parent = nullptr;  // of an instance
  uint32_t gpu_instance = 0;
  std::vector<FakeGpu*> instances;
  std::string name;
  double memory_gib = 80;
  bool gpm = true;
  double lost_at = std::numeric_limits<double>::infinity();
  double back_at = std::numeric_limits<double>::infinity();
  double hangs_at = std::numeric_limits<double>::infinity();
  std::map<std::string, fullbore::probe::nvml::Return> errors;
  std::vector<uint32_t> gpm_nan;
  std::optional<std::pair<double, uint64_t>> xid;
  std::vector<Process> processes;
  uint64_t reasons = 0x4;  // software power cap
  std::map<std::string, double> slowed;
  std::map<std::string, Wave> waves;
};

struct FakeMachine {
  fullbore::probe::nvml::Return init = fullbore::probe::nvml::kDriverNotLoaded;
  std::string driver = "550.54.15";
  int cuda = 12040;
  std::deque<FakeGpu> gpus;  // instances among them: addresses are handles
  std::vector<FakeGpu*> whole;
  std::vector<FakeGpu*> watched;
};

// The machine as Load() read it last. One is never destroyed, nor is the one before it: a call that hangs still
// looks at it, at the exit of the process, too.
FakeMachine& Machine();
// Reads the script at `path`; the machine's time begins now.
void Load(const char* path);

// Seconds since Load, or what was set; below 0: the former again. Both from any thread.
void SetTime(double seconds);
double Now();

double At(const FakeGpu& gpu, const char* wave, double time);
// The integral of At from 0 to `time`, as a counter of it would show.
double SumAt(const FakeGpu& gpu, const char* wave, double time);

}  // namespace fake_nvml
