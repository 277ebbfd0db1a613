// What one recording tells about buying: its steps, its loader, its device's work, and what it needs of a machine. What it
// does not tell is absent, and said with the recording that would.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "explain/replay/pipeline.h"
#include "explain/replay/simulate.h"
#include "explain/roofline/devices.h"
#include "plan/cores.h"
#include "record/recording.h"

namespace fullbore::plan {

// What cannot be told, why, and the command that records what would tell it; that may be empty.
struct NotTold {
  std::string what, why, command;
};

// Figures as they are expected, and as they are likely to be at least and at most.
struct Range {
  double low = 0, expected = 0, high = 0;
};

struct Recorded {
  std::string id;                            // of the run, or the name of the trace's first file
  std::string refusal;                       // why nothing follows from it; empty if something does
  std::string command;                       // "python train.py", or "COMMAND"
  std::string device_name;                   // as its driver calls it; "cpu"; empty where it is not known
  const roofline::Device* device = nullptr;  // null: unknown, or a CPU
  std::string model;                         // "ResNet18"; empty where it is not known
  bool on_cpu = false;
  int64_t gpus = 1;      // that trained together
  Cores cores;           // that the command could use, on one machine
  int64_t machines = 1;  // that its devices were spread over evenly, each with such cores

  // ---- a step ----
  double batch = 0;          // samples that a device takes in it; 0: not counted
  double step_ns = 0;        // mean, of the judged rank
  Range spread = {1, 1, 1};  // of the mean step: the interval of what was measured, as a ratio
  double profiler_low = 1,
         profiler_expected = 1;  // what of the step remains without the profiler that recorded it
  double wait_ns = 0;            // of it, for data
  double comm_ns = 0;            // of it, exposed: for other ranks
  double backward_ns = 0;
  bool trains = true;  // there are backward passes

  // ---- what the step waited for ----
  // Of one rank; its fetches and steps take what they would on cores of their own, its `cores` are not set. Absent where
  // fetches were not recorded.
  std::optional<replay::Pipeline> loader;
  int64_t loaded_by = 0;  // workers of each rank
  // Of the ranks, the judged one first; empty where the device's work is not recorded, or cannot be replayed.
  std::vector<record::StepGraph> graphs;
  bool of_window = false;  // they are of some steps under a profiler, of a run that knows the others
  double unknown_work =
      0;  // of the device's time: matrix kernels of which it is not known what they had to do

  double gradient_bytes = 0;  // that each rank exchanges in a step; 0: not known

  // ---- what a machine must have; absent where not recorded ----
  std::optional<double> device_memory_bytes, trainer_bytes, worker_bytes, read_bytes_per_sample;
  std::optional<int64_t> epoch_samples, run_samples;

  std::vector<NotTold> not_told;

  // Of as many of the recorded machines as so many devices take.
  Cores CoresWith(int64_t devices) const;
  double PerStep() const { return batch > 0 ? batch : 1; }  // samples, or steps where they are not counted
  replay::Ranks ranks(std::vector<const record::StepGraph*>& room) const;
};

// Of its judged stage. `window`: what the profiler saw in some of its steps, if it did (cli/device_windows.h).
// `samples_per_step`: as the user says where they are not counted; 0: he does not.
Recorded RecordedOf(const record::Recording& recording, const record::Recording* window = nullptr,
                    double samples_per_step = 0);

}  // namespace fullbore::plan
