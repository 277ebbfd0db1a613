// The GPUs of this machine as NVML shows them, and what its error codes mean for us. Shared by the fast and
// the slow probe; owned and called by the recorder thread alone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "measure/probe/nvml/nvml_library.h"
#include "measure/probe/nvml/slowdown_fields.h"
#include "measure/probe/probe.h"

namespace fullbore::probe::nvml {

// A GPU, or an instance of a partitioned one (MIG).
struct Gpu {
  Device device = nullptr;
  Device parent = nullptr;               // of an instance: the GPU; else null
  uint32_t index = 0;                    // as NVML counts: of an instance, its parent's
  uint32_t gpu_instance_id = 0;          // of an instance
  uint32_t mig_index = 0;                // of an instance
  std::string title;                     // "GPU 3", "GPU 0, instance 1": for messages
  std::string name, uuid;                // "NVIDIA H100 80GB HBM3", "GPU-8932f937-..."; empty where not told
  std::optional<uint32_t> minor_number;  // of /dev/nvidiaN: of an instance, its parent's
  record::Labels labels;                 // {"gpu": "3"}, {"gpu": "0", "mig": "1"}
  bool away = false;                     // lost or out of reach: retried every few seconds
  int64_t asked_again_ns = 0;
};

// Whether one metric of one GPU is still being read.
struct Switch {
  bool on = true;
};

class Session {
 public:
  // Opens the library at the first call and reports what it finds. False if no GPU can be read.
  bool Start(Sink& sink);
  ~Session();

  Library& library() { return *library_; }
  std::vector<Gpu>& gpus() { return gpus_; }
  const std::optional<SlowdownFields>& slowdown_fields() const { return slowdown_fields_; }  // of this driver

  // Whether to read this GPU now. A GPU that is away is retried at most every 5 seconds.
  bool Reachable(Gpu& gpu, int64_t t_ns, Sink& sink);

  // Whether a call succeeded. If not, acts on the error: the metric is switched off for good, the GPU is away
  // for now, or only this reading is missing.
  bool Succeeded(Return code, Gpu& gpu, Switch& metric, Sink& sink);

 private:
  enum class State : uint8_t { kNotStarted, kRunning, kStopped };

  void SayWhyNot(Return code, Sink& sink);
  void FindGpus(Sink& sink);
  void Describe(Gpu& gpu);
  void AddInstances(const Gpu& parent, Sink& sink);
  void SetAway(Gpu& gpu, Return code, Sink& sink);

  State state_ = State::kNotStarted;
  std::unique_ptr<Library> library_;
  std::vector<Gpu> gpus_;
  std::optional<SlowdownFields> slowdown_fields_;
  int64_t now_ns_ = 0;  // of the current round
  bool said_access_lost_ = false;
};

}  // namespace fullbore::probe::nvml
