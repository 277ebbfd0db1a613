// The part of NVML's binary interface that we call, declared from its public documentation (NVML API
// Reference, https://docs.nvidia.com/deploy/nvml-api). The library itself is opened at run time; no vendor
// header is needed to build. The names are NVML's, so that they can be looked up.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fullbore::probe::nvml {

using Return = uint32_t;
inline constexpr Return kSuccess = 0;
inline constexpr Return kInvalidArgument = 2;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNoPermission = 4;
inline constexpr Return kNotFound = 6;
inline constexpr Return kInsufficientSize = 7;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kTimeout = 10;
inline constexpr Return kFunctionNotFound = 13;
inline constexpr Return kGpuIsLost = 15;
inline constexpr Return kResetRequired = 16;
inline constexpr Return kOperatingSystem = 17;
inline constexpr Return kLibRmVersionMismatch = 18;
inline constexpr Return kArgumentVersionMismatch = 25;
inline constexpr Return kDeprecated = 26;
inline constexpr Return kUnknown = 999;

struct DeviceHandle;
using Device = DeviceHandle*;
struct EventSetHandle;
using EventSet = EventSetHandle*;
struct GpmSampleHandle;
using GpmSample = GpmSampleHandle*;

inline constexpr uint32_t kNameBytes = 96;  // NVML_DEVICE_NAME_V2_BUFFER_SIZE, the UUID's too
inline constexpr uint32_t kClockSm = 1;
inline constexpr uint32_t kClockMemory = 2;
inline constexpr uint32_t kTemperatureGpu = 0;
inline constexpr uint32_t kEccCorrected = 0;
inline constexpr uint32_t kEccUncorrected = 1;
inline constexpr uint32_t kEccVolatile = 0;  // since the driver was loaded
inline constexpr uint64_t kEventXid = 0x8;

// nvmlDeviceGetCurrentClocksEventReasons
inline constexpr uint64_t kReasonSoftThermal = 0x20;  // nvmlClocksEventReasonSwThermalSlowdown
inline constexpr uint64_t kReasonHardThermal = 0x40;  // nvmlClocksThrottleReasonHwThermalSlowdown
inline constexpr uint64_t kReasonPowerBrake = 0x80;   // nvmlClocksThrottleReasonHwPowerBrakeSlowdown

// nvmlDeviceGetFieldValues
inline constexpr uint32_t kFieldThrottlePowerNs = 74;     // NVML_FI_DEV_PERF_POLICY_POWER
inline constexpr uint32_t kFieldThrottleThermalNs = 75;   // NVML_FI_DEV_PERF_POLICY_THERMAL
inline constexpr uint32_t kFieldNvlinkSentKib = 138;      // NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX
inline constexpr uint32_t kFieldNvlinkReceivedKib = 139;  // NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX
inline constexpr uint32_t kFieldPowerInstantMw = 186;     // NVML_FI_DEV_POWER_INSTANT
inline constexpr uint32_t kFieldPcieSentBytes = 197;      // NVML_FI_DEV_PCIE_COUNT_TX_BYTES
inline constexpr uint32_t kFieldPcieReceivedBytes = 198;  // NVML_FI_DEV_PCIE_COUNT_RX_BYTES
inline constexpr uint32_t kAllLinks = UINT32_MAX;         // scope of the NVLink fields: the sum

enum class ValueType : uint32_t {
  kDouble,
  kUnsignedInt,
  kUnsignedLong,
  kUnsignedLongLong,
  kSignedLongLong,
  kSignedInt
};

union Value {
  double d;
  uint32_t ui;
  uint64_t ul;
  uint64_t ull;
  int64_t sll;
  int32_t si;
};

struct FieldValue {
  uint32_t field_id;
  uint32_t scope_id;
  int64_t timestamp_us;
  int64_t latency_us;
  ValueType value_type;
  Return result;
  Value value;
};
static_assert(sizeof(FieldValue) == 40);

struct Utilization {  // percent
  uint32_t gpu;
  uint32_t memory;
};

struct Memory {
  uint64_t total, free, used;
};

struct MemoryV2 {
  uint32_t version;
  uint64_t total, reserved, free, used;
};
static_assert(sizeof(MemoryV2) == 40);
inline constexpr uint32_t kMemoryV2Version = sizeof(MemoryV2) | 2U << 24;

struct ProcessInfo {  // of the _v2 call
  uint32_t pid;
  uint64_t used_memory;
  uint32_t gpu_instance_id;
  uint32_t compute_instance_id;
};
static_assert(sizeof(ProcessInfo) == 24);
inline constexpr uint64_t kMemoryNotAvailable = UINT64_MAX;

struct ProcessUtilization {
  uint32_t pid;
  uint64_t timestamp_us;
  uint32_t sm_percent, memory_percent, encoder_percent, decoder_percent;
};
static_assert(sizeof(ProcessUtilization) == 32);

struct EventData {
  Device device;
  uint64_t type;
  uint64_t data;
  uint32_t gpu_instance_id;
  uint32_t compute_instance_id;
};
static_assert(sizeof(EventData) == 32);

// nvmlGpmMetricsGet: NVML_GPM_METRIC_... Utilisations in percent, traffic in MiB/s.
inline constexpr uint32_t kGpmGraphicsUtil = 1;
inline constexpr uint32_t kGpmSmUtil = 2;
inline constexpr uint32_t kGpmSmOccupancy = 3;
inline constexpr uint32_t kGpmIntegerUtil = 4;
inline constexpr uint32_t kGpmAnyTensorUtil = 5;
inline constexpr uint32_t kGpmDfmaTensorUtil = 6;
inline constexpr uint32_t kGpmHmmaTensorUtil = 7;
inline constexpr uint32_t kGpmImmaTensorUtil = 9;
inline constexpr uint32_t kGpmDramBwUtil = 10;
inline constexpr uint32_t kGpmFp64Util = 11;
inline constexpr uint32_t kGpmFp32Util = 12;
inline constexpr uint32_t kGpmFp16Util = 13;
inline constexpr uint32_t kGpmPcieTxPerSec = 20;
inline constexpr uint32_t kGpmPcieRxPerSec = 21;
inline constexpr uint32_t kGpmNvlinkRxPerSec = 60;
inline constexpr uint32_t kGpmNvlinkTxPerSec = 61;

struct GpmSupport {
  uint32_t version;
  uint32_t supported;
};
inline constexpr uint32_t kGpmSupportVersion = 1;

struct GpmMetric {
  uint32_t id;
  Return result;
  double value;
  const char* short_name;
  const char* long_name;
  const char* unit;
};
static_assert(sizeof(GpmMetric) == 40);

// The library's own array had room for 98 metrics, then 210, 333 and 477, all as "version 1". It may write to
// all of it, so ours is larger than any of them.
struct GpmMetricsGet {
  uint32_t version;
  uint32_t count;
  GpmSample sample1;
  GpmSample sample2;
  GpmMetric metrics[1024];
};
static_assert(offsetof(GpmMetricsGet, metrics) == 24);
inline constexpr uint32_t kGpmMetricsGetVersion = 1;

}  // namespace fullbore::probe::nvml
