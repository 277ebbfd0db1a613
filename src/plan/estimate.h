// The recorded run on another device, on several of them, on other cores: what a step takes, what binds it, and what it
// needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/replay/predict.h"
#include "plan/market.h"
#include "plan/recorded.h"

namespace fullbore::plan {

enum class Pipe : uint8_t {
  kDevice,    // its own work
  kHost,      // the host that launches it
  kTraining,  // either of the two: not told apart without the device's own recording
  kCopies,    // over the link between host and device
  kLink,      // between devices
  kLoader,    // its workers
  kCores,     // that they, and the training, run on
};
std::string_view Name(Pipe pipe);  // "device", as tables show it

// Where the run could be.
struct Setup {
  std::string device_name;                   // as people write it: "T4"
  const roofline::Device* device = nullptr;  // null: the recorded one, which is not in the table
  int64_t gpus = 1;
  std::optional<Machine> machine;  // of the file; else the recorded one
};

struct Estimate {
  Setup setup;
  // Why there are no figures for it; then nothing else is set but memory. What else is not told for the same reason
  // ("other devices"), and the command that records what would tell it; both may be empty.
  std::string why_not, not_told, would_tell;
  Cores cores;          // on which it was taken to run
  int64_t workers = 0;  // of each device; of a run whose loader was recorded
  replay::Prediction step;
  Range per_s;  // of all devices: samples, or steps where these are not counted
  Pipe binds = Pipe::kTraining;
  Range device_ns;                         // of a step: the device's own work; 0 where it was not recorded
  std::vector<replay::ClassTime> classes;  // of another device than the recorded one
  // Needed to keep it fed; absent where not known.
  std::optional<double> cores_needed, host_bytes_needed, read_bytes_per_s;
  std::optional<double> memory_filled;  // of the device's
};

Estimate EstimateOn(const Recorded& recorded, const Setup& setup);

// Whether the links of its devices can be the recorded ones: those reached no more than these are said to carry.
bool MayHaveTheRecordedLinks(const Recorded& recorded, const Setup& setup);

}  // namespace fullbore::plan
