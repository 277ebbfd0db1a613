#include "measure/probe/nvml/device_memory.h"

#include "measure/probe/nvml/nvml_session.h"

namespace fullbore::probe::nvml {

namespace {

// Who asks only once has no use for anything that NVML says besides.
class Unheard : public Sink {
 public:
  void Read(const record::SeriesKey& /*key*/, int64_t /*t_ns*/, double /*value*/) override {}
  void Say(record::Severity /*severity*/, std::string_view /*source*/, std::string_view /*text*/) override {}
  void SetMachineFact(std::string_view /*key*/, std::string_view /*value*/) override {}
};

}  // namespace

std::vector<DeviceMemory> MemoryOfDevices() {
  Unheard sink;
  Session session;
  std::vector<DeviceMemory> devices;
  if (!session.Start(sink)) return devices;
  for (const Gpu& gpu : session.gpus()) {
    Memory now{};
    if (gpu.away || session.library().memory(gpu.device, &now) != kSuccess || now.total == 0) continue;
    devices.push_back({gpu.title, static_cast<int64_t>(now.free), static_cast<int64_t>(now.total)});
  }
  return devices;
}

}  // namespace fullbore::probe::nvml
