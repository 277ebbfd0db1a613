#include "measure/probe/nvml/nvml_session.h"

#include <fmt/format.h>

#include "base/clock.h"

namespace fullbore::probe::nvml {

namespace {

constexpr std::string_view kSource = "nvml";
constexpr int64_t kAskAgainNs = 5 * kNsPerSecond;

std::string MismatchText() {
  return "GPUs are not recorded: the NVIDIA kernel driver and its library differ in version (error 18), "
         "because the driver was updated while it was loaded. Reboot, or unload and reload the nvidia "
         "modules; in a container, restart the container";
}

}  // namespace

Session::~Session() {
  if (state_ == State::kRunning) library_->shutdown();
}

bool Session::Start(Sink& sink) {
  if (state_ != State::kNotStarted) return state_ == State::kRunning;
  state_ = State::kStopped;
  Result<std::unique_ptr<Library>> library = Library::Open();
  if (!library) return false;  // no GPU, or none that NVML knows: nothing to report
  library_ = std::move(library).value();
  if (const Return code = library_->init(); code != kSuccess) {
    SayWhyNot(code, sink);
    return false;
  }
  state_ = State::kRunning;
  FindGpus(sink);
  return true;
}

void Session::SayWhyNot(Return code, Sink& sink) {
  if (code == kLibRmVersionMismatch) return sink.Say(record::Severity::kWarning, kSource, MismatchText());
  if (code == kDriverNotLoaded) {
    return sink.Say(
        record::Severity::kInfo, kSource,
        "GPUs are not recorded: the NVIDIA library is here, but the driver is not loaded (error 9)");
  }
  sink.Say(
      record::Severity::kWarning, kSource,
      fmt::format("GPUs are not recorded: NVML does not initialise (error {}). Try nvidia-smi, which uses "
                  "the same library; in a container, check that it was started with access to the GPUs",
                  code));
}

void Session::FindGpus(Sink& sink) {
  char text[kNameBytes] = "";
  if (library_->driver_version(text, sizeof text) == kSuccess) {
    sink.SetMachineFact("driver_version", text);
    slowdown_fields_ = SlowdownFieldsOf(text);
  }
  int cuda = 0;
  if (library_->cuda_driver_version(&cuda) == kSuccess) {
    sink.SetMachineFact("cuda_driver_version", fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10));
  }
  uint32_t count = 0;
  if (library_->device_count(&count) != kSuccess) return;
  sink.SetMachineFact("gpus", std::to_string(count));
  for (uint32_t i = 0; i < count; ++i) {
    Gpu gpu;
    gpu.index = i;
    gpu.title = fmt::format("GPU {}", i);
    gpu.labels = {{"gpu", std::to_string(i)}};
    const Return code = library_->device_by_index(i, &gpu.device);
    if (code != kSuccess) {
      SetAway(gpu, code, sink);
      gpus_.push_back(std::move(gpu));
      continue;
    }
    Describe(gpu);
    if (!gpu.name.empty()) sink.SetMachineFact(fmt::format("gpu{}", i), gpu.name);
    if (!gpu.uuid.empty()) sink.SetMachineFact(fmt::format("gpu{}_uuid", i), gpu.uuid);
    gpus_.push_back(gpu);
    AddInstances(gpu, sink);
  }
}

void Session::Describe(Gpu& gpu) {
  char text[kNameBytes] = "";
  if (library_->name(gpu.device, text, sizeof text) == kSuccess) gpu.name = text;
  if (library_->uuid(gpu.device, text, sizeof text) == kSuccess) gpu.uuid = text;
  uint32_t minor = 0;
  if (library_->minor_number(gpu.device, &minor) == kSuccess) gpu.minor_number = minor;
}

void Session::AddInstances(const Gpu& parent, Sink& sink) {
  uint32_t enabled = 0, pending = 0, most = 0;
  if (library_->mig_mode(parent.device, &enabled, &pending) != kSuccess || enabled == 0) return;
  if (library_->max_mig_devices(parent.device, &most) != kSuccess) return;
  uint32_t found = 0;
  for (uint32_t i = 0; i < most; ++i) {
    Gpu instance;
    if (library_->mig_device_by_index(parent.device, i, &instance.device) != kSuccess)
      continue;  // an empty slot
    if (library_->gpu_instance_id(instance.device, &instance.gpu_instance_id) != kSuccess) continue;
    ++found;
    Describe(instance);
    instance.minor_number = parent.minor_number;
    instance.parent = parent.device;
    instance.index = parent.index;
    instance.mig_index = i;
    instance.title = fmt::format("{}, instance {}", parent.title, i);
    instance.labels = {{"gpu", std::to_string(parent.index)}, {"mig", std::to_string(i)}};
    gpus_.push_back(std::move(instance));
  }
  sink.SetMachineFact(fmt::format("gpu{}_mig_instances", parent.index), std::to_string(found));
}

bool Session::Reachable(Gpu& gpu, int64_t t_ns, Sink& sink) {
  if (state_ != State::kRunning) return false;
  now_ns_ = t_ns;
  if (!gpu.away) return true;
  if (t_ns - gpu.asked_again_ns < kAskAgainNs) return false;
  gpu.asked_again_ns = t_ns;
  // The handle of a GPU that was reset is no longer valid.
  Device device = nullptr;
  if (library_->device_by_index(gpu.index, &device) != kSuccess) return false;
  if (gpu.parent != nullptr) {
    gpu.parent = device;
    if (library_->mig_device_by_index(gpu.parent, gpu.mig_index, &device) != kSuccess) return false;
  }
  Memory memory;
  if (library_->memory(device, &memory) != kSuccess) return false;
  gpu.device = device;
  gpu.away = false;
  sink.Say(record::Severity::kInfo, kSource, gpu.title + " is back");
  return true;
}

bool Session::Succeeded(Return code, Gpu& gpu, Switch& metric, Sink& sink) {
  switch (code) {
    case kSuccess:
      return true;
    case kNotSupported:
    case kFunctionNotFound:
    case kArgumentVersionMismatch:
    case kInvalidArgument:  // an older library that does not know this id
    case kDeprecated:
    case kNoPermission:
      metric.on = false;
      return false;
    case kGpuIsLost:
    case kResetRequired:
    case kOperatingSystem:
    case kUnknown:
      SetAway(gpu, code, sink);
      return false;
    case kLibRmVersionMismatch:
      if (state_ == State::kRunning) sink.Say(record::Severity::kWarning, kSource, MismatchText());
      state_ = State::kStopped;
      return false;
    default:
      return false;  // no data yet, or busy: only this reading is missing
  }
}

void Session::SetAway(Gpu& gpu, Return code, Sink& sink) {
  if (gpu.away) return;
  gpu.away = true;
  gpu.asked_again_ns = now_ns_;
  if (code == kGpuIsLost || code == kResetRequired) {
    sink.Say(
        record::Severity::kError, kSource,
        code == kGpuIsLost
            ? gpu.title +
                  " is lost: it no longer answers on the bus (error 15). Look for Xid messages in dmesg; "
                  "it takes a reboot, and a repair if it happens again"
            : gpu.title + " must be reset before it can be used again (error 16): nvidia-smi --gpu-reset");
    return;
  }
  if (std::exchange(said_access_lost_, true)) return;
  sink.Say(record::Severity::kWarning, kSource,
           fmt::format("{} can no longer be read (error {}). In a container, access to the devices was lost, "
                       "usually through a `systemctl daemon-reload` on the host: restart the container",
                       gpu.title, code));
}

}  // namespace fullbore::probe::nvml
