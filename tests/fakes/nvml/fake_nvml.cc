// A libnvidia-ml.so.1 that simulates a scripted machine, for tests and for work without a GPU:
//
//   FULLBORE_NVML=build/.../libfake_nvml.so FULLBORE_FAKE_NVML=tests/fakes/nvml/eight_h100.json
//     fullbore run -- ...
//
// fake_machine.h says what a script can hold.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fake_machine.h"
#include "measure/probe/nvml/nvml_abi.h"

namespace nvml = fullbore::probe::nvml;
using namespace fake_nvml;
using nvml::Return;

namespace {

constexpr std::pair<uint32_t, const char*> kGpmWaves[] = {
    {1, "graphics_active"}, {2, "sm_active"},     {3, "sm_occupancy"},    {4, "integer_active"},
    {5, "tensor_active"},   {6, "tensor_double"}, {7, "tensor_half"},     {9, "tensor_integer"},
    {10, "dram_active"},    {11, "fp64_active"},  {12, "fp32_active"},    {13, "fp16_active"},
    {20, "pcie_send"},      {21, "pcie_receive"}, {60, "nvlink_receive"}, {61, "nvlink_send"}};

struct Sample {
  double time = -1;
  FakeGpu* gpu = nullptr;
};

FakeGpu& GpuOf(nvml::Device device) { return *reinterpret_cast<FakeGpu*>(device); }
nvml::Device HandleOf(FakeGpu& gpu) { return reinterpret_cast<nvml::Device>(&gpu); }
Sample& SampleOf(nvml::GpmSample sample) { return *reinterpret_cast<Sample*>(sample); }

double PercentAt(const FakeGpu& gpu, const char* name) {
  return std::clamp(At(gpu, name, Now()), 0.0, 100.0);
}

Return CodeOf(const FakeGpu& gpu, const std::string& call) {
  while (Now() >= gpu.hangs_at) pause();
  if (Now() >= gpu.lost_at && Now() < gpu.back_at) return nvml::kGpuIsLost;
  const auto found = gpu.errors.find(call);
  return found == gpu.errors.end() ? nvml::kSuccess : found->second;
}

Return CopyText(const std::string& text, char* buffer, uint32_t bytes) {
  if (text.size() >= bytes) return nvml::kInsufficientSize;
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return nvml::kSuccess;
}

constexpr double kGiB = 1024.0 * 1024 * 1024;

uint64_t UsedBytes(const FakeGpu& gpu) {
  return static_cast<uint64_t>(
      std::clamp(At(gpu, "memory_used", Now()) * gpu.memory_gib / 80, 0.0, gpu.memory_gib) * kGiB);
}

// The numbers in the headers of 12.9, 13.0 and 13.1. On other drivers they stand for power-smoothing
// settings, some of which would look like a GPU that is slowed down all the time.
void SetSlowdown(const FakeGpu& gpu, uint32_t reason, bool is_counter, nvml::FieldValue& field) {
  static constexpr const char* kReasons[] = {"software_thermal", "hardware_thermal", "power_brake"};
  const auto found = gpu.slowed.find(kReasons[reason]);
  const double part = !is_counter ? 1 : found == gpu.slowed.end() ? 0 : found->second;
  field.value.ull = static_cast<uint64_t>(Now() * part * 1e9);
}

void SetField(const FakeGpu& gpu, nvml::FieldValue& field) {
  field.result = CodeOf(gpu, "field:" + std::to_string(field.field_id));
  field.value_type = nvml::ValueType::kUnsignedLongLong;
  const auto counter = [&](const char* wave, double factor) {
    field.value.ull = static_cast<uint64_t>(std::max(0.0, SumAt(gpu, wave, Now())) * factor);
  };
  switch (field.field_id) {
    case nvml::kFieldPowerInstantMw:
      field.value_type = nvml::ValueType::kUnsignedInt;
      field.value.ui = static_cast<uint32_t>(At(gpu, "power", Now()) * 1000);
      break;
    case nvml::kFieldPcieSentBytes:
      counter("pcie_send", 1 << 20);
      break;
    case nvml::kFieldPcieReceivedBytes:
      counter("pcie_receive", 1 << 20);
      break;
    case nvml::kFieldNvlinkSentKib:
      counter("nvlink_send", 1 << 10);
      break;
    case nvml::kFieldNvlinkReceivedKib:
      counter("nvlink_receive", 1 << 10);
      break;
    case nvml::kFieldThrottlePowerNs:  // a tenth of the time
      field.value.ull = static_cast<uint64_t>(Now() * 1e8);
      break;
    case 251:
    case 252:
    case 253: {
      const int branch = std::stoi(Machine().driver);
      SetSlowdown(gpu, field.field_id - 251, branch >= 575 && branch < 590, field);
      break;
    }
    case 269:
    case 270:
    case 271:
      SetSlowdown(gpu, field.field_id - 269, std::stoi(Machine().driver) >= 590, field);
      break;
    default:
      field.value.ull = 0;
  }
}

}  // namespace

#define FAKE_NVML extern "C" __attribute__((visibility("default"))) Return
#define ANSWER_FOR(device) \
  if (const Return code = CodeOf(GpuOf(device), __func__); code != nvml::kSuccess) return code

extern "C" __attribute__((visibility("default"))) void fakeNvmlSetTime(double seconds) { SetTime(seconds); }

FAKE_NVML nvmlInit_v2() {
  const char* const script = std::getenv("FULLBORE_FAKE_NVML");
  if (script == nullptr) return nvml::kDriverNotLoaded;
  Load(script);
  return Machine().init;
}
FAKE_NVML nvmlInitWithFlags(uint32_t) { return nvmlInit_v2(); }  // what other monitors call
FAKE_NVML nvmlShutdown() { return nvml::kSuccess; }
FAKE_NVML nvmlSystemGetDriverVersion(char* text, uint32_t bytes) {
  return CopyText(Machine().driver, text, bytes);
}
FAKE_NVML nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return *version = Machine().cuda, nvml::kSuccess;
}
FAKE_NVML nvmlDeviceGetCount_v2(uint32_t* count) {
  return *count = static_cast<uint32_t>(Machine().whole.size()), nvml::kSuccess;
}
FAKE_NVML nvmlDeviceGetHandleByIndex_v2(uint32_t index, nvml::Device* device) {
  if (index >= Machine().whole.size()) return nvml::kInvalidArgument;
  *device = HandleOf(*Machine().whole[index]);
  return CodeOf(*Machine().whole[index], __func__);
}
FAKE_NVML nvmlDeviceGetName(nvml::Device device, char* text, uint32_t bytes) {
  ANSWER_FOR(device);
  return CopyText(GpuOf(device).name, text, bytes);
}
FAKE_NVML nvmlDeviceGetUUID(nvml::Device device, char* text, uint32_t bytes) {
  ANSWER_FOR(device);
  const FakeGpu& gpu = GpuOf(device);
  const std::string number = std::to_string(gpu.index);
  if (gpu.parent != nullptr)
    return CopyText("MIG-00000000-0000-0000-000" + number + "-00000000000" + std::to_string(gpu.gpu_instance),
                    text, bytes);
  return CopyText("GPU-00000000-0000-0000-0000-00000000000" + number, text, bytes);
}
FAKE_NVML nvmlDeviceGetMinorNumber(nvml::Device device, uint32_t* minor) {
  ANSWER_FOR(device);
  if (GpuOf(device).parent != nullptr) return nvml::kNotSupported;
  return *minor = GpuOf(device).index, nvml::kSuccess;
}

FAKE_NVML nvmlDeviceGetMigMode(nvml::Device device, uint32_t* current, uint32_t* pending) {
  ANSWER_FOR(device);
  *current = *pending = GpuOf(device).instances.empty() ? 0 : 1;
  return nvml::kSuccess;
}
FAKE_NVML nvmlDeviceGetMaxMigDeviceCount(nvml::Device device, uint32_t* count) {
  ANSWER_FOR(device);
  return *count = 7, nvml::kSuccess;
}
FAKE_NVML nvmlDeviceGetMigDeviceHandleByIndex(nvml::Device device, uint32_t index, nvml::Device* instance) {
  ANSWER_FOR(device);
  if (index >= GpuOf(device).instances.size()) return nvml::kNotFound;
  return *instance = HandleOf(*GpuOf(device).instances[index]), nvml::kSuccess;
}
FAKE_NVML nvmlDeviceGetGpuInstanceId(nvml::Device device, uint32_t* id) {
  ANSWER_FOR(device);
  return *id = GpuOf(device).gpu_instance, nvml::kSuccess;
}

FAKE_NVML nvmlDeviceGetUtilizationRates(nvml::Device device, nvml::Utilization* rates) {
  ANSWER_FOR(device);
  const FakeGpu& gpu = GpuOf(device);
  if (gpu.parent != nullptr || !gpu.instances.empty()) return nvml::kNotSupported;  // as with MIG
  *rates = {static_cast<uint32_t>(PercentAt(gpu, "utilization")),
            static_cast<uint32_t>(PercentAt(gpu, "memory_utilization"))};
  return nvml::kSuccess;
}
FAKE_NVML nvmlDeviceGetMemoryInfo(nvml::Device device, nvml::Memory* memory) {
  ANSWER_FOR(device);
  const auto total = static_cast<uint64_t>(GpuOf(device).memory_gib * kGiB);
  const uint64_t used = UsedBytes(GpuOf(device));
  *memory = {total, total - used, used};
  return nvml::kSuccess;
}
FAKE_NVML nvmlDeviceGetMemoryInfo_v2(nvml::Device device, nvml::MemoryV2* memory) {
  ANSWER_FOR(device);
  if (memory->version != nvml::kMemoryV2Version) return nvml::kArgumentVersionMismatch;
  const auto total = static_cast<uint64_t>(GpuOf(device).memory_gib * kGiB);
  const uint64_t used = UsedBytes(GpuOf(device));
  *memory = {memory->version, total, 0, total - used, used};
  return nvml::kSuccess;
}
FAKE_NVML nvmlDeviceGetPowerUsage(nvml::Device device, uint32_t* milliwatts) {
  ANSWER_FOR(device);
  return *milliwatts = static_cast<uint32_t>(At(GpuOf(device), "power", Now()) * 1000), nvml::kSuccess;
}
FAKE_NVML nvmlDeviceGetEnforcedPowerLimit(nvml::Device device, uint32_t* milliwatts) {
  ANSWER_FOR(device);
  return *milliwatts = 700'000, nvml::kSuccess;
}
FAKE_NVML nvmlDeviceGetTotalEnergyConsumption(nvml::Device device, unsigned long long* millijoules) {
  ANSWER_FOR(device);
  constexpr unsigned long long kBeforeUs = 123'456'789;
  *millijoules = kBeforeUs + static_cast<unsigned long long>(SumAt(GpuOf(device), "power", Now()) * 1000);
  return nvml::kSuccess;
}
FAKE_NVML nvmlDeviceGetClockInfo(nvml::Device device, uint32_t clock, uint32_t* mhz) {
  ANSWER_FOR(device);
  *mhz = clock == nvml::kClockSm ? static_cast<uint32_t>(At(GpuOf(device), "sm_clock", Now())) : 2619;
  return nvml::kSuccess;
}
FAKE_NVML nvmlDeviceGetMaxClockInfo(nvml::Device device, uint32_t clock, uint32_t* mhz) {
  ANSWER_FOR(device);
  return *mhz = clock == nvml::kClockSm ? 1980 : 2619, nvml::kSuccess;
}
FAKE_NVML nvmlDeviceGetTemperature(nvml::Device device, uint32_t, uint32_t* celsius) {
  ANSWER_FOR(device);
  return *celsius = static_cast<uint32_t>(At(GpuOf(device), "temperature", Now())), nvml::kSuccess;
}
FAKE_NVML nvmlDeviceGetCurrentClocksEventReasons(nvml::Device device, unsigned long long* reasons) {
  ANSWER_FOR(device);
  return *reasons = GpuOf(device).reasons, nvml::kSuccess;
}
FAKE_NVML nvmlDeviceGetTotalEccErrors(nvml::Device device, uint32_t, uint32_t, unsigned long long* count) {
  ANSWER_FOR(device);
  return *count = 0, nvml::kSuccess;
}
FAKE_NVML nvmlDeviceGetRemappedRows(nvml::Device device, uint32_t* corrected, uint32_t* uncorrected,
                                    uint32_t* pending, uint32_t* failed) {
  ANSWER_FOR(device);
  *corrected = 1;
  *uncorrected = *pending = *failed = 0;
  return nvml::kSuccess;
}
FAKE_NVML nvmlDeviceGetFieldValues(nvml::Device device, int count, nvml::FieldValue* values) {
  ANSWER_FOR(device);
  for (int i = 0; i < count; ++i) SetField(GpuOf(device), values[i]);
  return nvml::kSuccess;
}

static Return List(const FakeGpu& gpu, bool graphics, uint32_t* count, nvml::ProcessInfo* infos) {
  std::vector<nvml::ProcessInfo> listed;
  for (const Process& process : gpu.processes) {
    if (process.graphics != graphics || Now() >= process.until) continue;
    listed.push_back({process.pid, static_cast<uint64_t>(process.memory_gib * kGiB), process.gpu_instance,
                      process.gpu_instance});
  }
  const bool fits = *count >= listed.size();
  *count = static_cast<uint32_t>(listed.size());
  if (!fits) return nvml::kInsufficientSize;
  std::ranges::copy(listed, infos);
  return nvml::kSuccess;
}
FAKE_NVML nvmlDeviceGetComputeRunningProcesses_v2(nvml::Device device, uint32_t* count,
                                                  nvml::ProcessInfo* infos) {
  ANSWER_FOR(device);
  return List(GpuOf(device), false, count, infos);
}
FAKE_NVML nvmlDeviceGetGraphicsRunningProcesses_v2(nvml::Device device, uint32_t* count,
                                                   nvml::ProcessInfo* infos) {
  ANSWER_FOR(device);
  return List(GpuOf(device), true, count, infos);
}
// As in drivers 535.43 to 535.86: its entries have one more field.
struct LargerProcessInfo {
  nvml::ProcessInfo info;
  uint64_t protected_memory;
};
FAKE_NVML nvmlDeviceGetComputeRunningProcesses_v3(nvml::Device device, uint32_t* count,
                                                  LargerProcessInfo* infos) {
  std::vector<nvml::ProcessInfo> entries(*count);
  const Return code = nvmlDeviceGetComputeRunningProcesses_v2(device, count, entries.data());
  for (uint32_t i = 0; code == nvml::kSuccess && i < *count; ++i) infos[i] = {entries[i], 0};
  return code;
}
FAKE_NVML nvmlDeviceGetProcessUtilization(nvml::Device device, nvml::ProcessUtilization* samples,
                                          uint32_t* count, unsigned long long last_seen_us) {
  ANSWER_FOR(device);
  const FakeGpu& gpu = GpuOf(device);
  // Like the real one: after the fresh samples come a stale one and a nonsensical one.
  if (*count < gpu.processes.size() + 2) return nvml::kInsufficientSize;
  const auto now_us = static_cast<unsigned long long>(Now() * 1e6) + 1'000'000;
  if (now_us <= last_seen_us) return nvml::kNotFound;
  *count = static_cast<uint32_t>(gpu.processes.size()) + 2;
  for (const Process& process : gpu.processes) {
    *samples++ = {process.pid, now_us, static_cast<uint32_t>(process.sm_percent), 0, 0, 0};
  }
  *samples++ = {4242, last_seen_us, 77, 0, 0, 0};
  *samples++ = {4243, now_us, 3'000'000'000, 0, 0, 0};
  return nvml::kSuccess;
}

FAKE_NVML nvmlEventSetCreate(nvml::EventSet* set) {
  *set = reinterpret_cast<nvml::EventSet>(&Machine().watched);
  return nvml::kSuccess;
}
FAKE_NVML nvmlEventSetFree(nvml::EventSet) { return nvml::kSuccess; }
FAKE_NVML nvmlDeviceRegisterEvents(nvml::Device device, unsigned long long, nvml::EventSet) {
  ANSWER_FOR(device);
  Machine().watched.push_back(&GpuOf(device));
  return nvml::kSuccess;
}
FAKE_NVML nvmlEventSetWait_v2(nvml::EventSet, nvml::EventData* event, uint32_t) {
  for (FakeGpu* gpu : Machine().watched) {
    if (!gpu->xid || Now() < gpu->xid->first) continue;
    *event = {HandleOf(*gpu), nvml::kEventXid, gpu->xid->second, UINT32_MAX, UINT32_MAX};
    gpu->xid.reset();
    return nvml::kSuccess;
  }
  return nvml::kTimeout;
}

FAKE_NVML nvmlGpmQueryDeviceSupport(nvml::Device device, nvml::GpmSupport* support) {
  ANSWER_FOR(device);
  if (support->version != nvml::kGpmSupportVersion) return nvml::kArgumentVersionMismatch;
  return support->supported = GpuOf(device).gpm ? 1 : 0, nvml::kSuccess;
}
FAKE_NVML nvmlGpmSampleAlloc(nvml::GpmSample* sample) {
  return *sample = reinterpret_cast<nvml::GpmSample>(new Sample), nvml::kSuccess;
}
FAKE_NVML nvmlGpmSampleFree(nvml::GpmSample sample) {
  delete &SampleOf(sample);
  return nvml::kSuccess;
}
FAKE_NVML nvmlGpmSampleGet(nvml::Device device, nvml::GpmSample sample) {
  ANSWER_FOR(device);
  if (!GpuOf(device).instances.empty()) return nvml::kNotSupported;
  SampleOf(sample) = {Now(), &GpuOf(device)};
  return nvml::kSuccess;
}
FAKE_NVML nvmlGpmMigSampleGet(nvml::Device device, uint32_t gpu_instance, nvml::GpmSample sample) {
  ANSWER_FOR(device);
  for (FakeGpu* instance : GpuOf(device).instances) {
    if (instance->gpu_instance == gpu_instance) return SampleOf(sample) = {Now(), instance}, nvml::kSuccess;
  }
  return nvml::kInvalidArgument;
}
FAKE_NVML nvmlGpmMetricsGet(nvml::GpmMetricsGet* get) {
  const Sample before = SampleOf(get->sample1);
  const Sample now = SampleOf(get->sample2);
  if (get->version != nvml::kGpmMetricsGetVersion || now.gpu == nullptr || before.gpu != now.gpu) {
    return nvml::kInvalidArgument;
  }
  for (uint32_t i = 0; i < get->count; ++i) {
    nvml::GpmMetric& metric = get->metrics[i];
    const auto* wave = std::ranges::find(kGpmWaves, metric.id, &std::pair<uint32_t, const char*>::first);
    metric.result = wave == std::end(kGpmWaves) ? nvml::kNotSupported
                                                : CodeOf(*now.gpu, "gpm:" + std::to_string(metric.id));
    if (metric.result != nvml::kSuccess) continue;
    const double seconds = now.time - before.time;
    const bool nan =
        seconds < 0.099 || std::ranges::find(now.gpu->gpm_nan, metric.id) != now.gpu->gpm_nan.end();
    metric.value =
        nan ? std::numeric_limits<double>::quiet_NaN()
            : (SumAt(*now.gpu, wave->second, now.time) - SumAt(*now.gpu, wave->second, before.time)) /
                  seconds;
  }
  return nvml::kSuccess;
}
