// Checks what src/measure/probe/nvml declares of NVML against NVML's own header. test_vendor_headers.py
// compiles this with each version, with function checks generated from nvml_library.cc, and runs it: it
// prints the numbers that differ between versions, one "NAME OURS THEIRS" per line.
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#include <cstdio>
#include <cstdlib>

#include "abi.h"
#include "measure/probe/nvml/nvml_library.h"
#include "measure/probe/nvml/slowdown_fields.h"

namespace ours = fullbore::probe::nvml;

// Ours is a class around a pointer to a function; this is that pointer.
template <typename... Arguments>
ours::Return (*PointerOf(const ours::Function<Arguments...>&))(Arguments...);

#include "nvml_functions.inc"

SAME_NUMBER(ours::kSuccess, NVML_SUCCESS);
SAME_NUMBER(ours::kInvalidArgument, NVML_ERROR_INVALID_ARGUMENT);
SAME_NUMBER(ours::kNotSupported, NVML_ERROR_NOT_SUPPORTED);
SAME_NUMBER(ours::kNoPermission, NVML_ERROR_NO_PERMISSION);
SAME_NUMBER(ours::kNotFound, NVML_ERROR_NOT_FOUND);
SAME_NUMBER(ours::kInsufficientSize, NVML_ERROR_INSUFFICIENT_SIZE);
SAME_NUMBER(ours::kDriverNotLoaded, NVML_ERROR_DRIVER_NOT_LOADED);
SAME_NUMBER(ours::kTimeout, NVML_ERROR_TIMEOUT);
SAME_NUMBER(ours::kFunctionNotFound, NVML_ERROR_FUNCTION_NOT_FOUND);
SAME_NUMBER(ours::kGpuIsLost, NVML_ERROR_GPU_IS_LOST);
SAME_NUMBER(ours::kResetRequired, NVML_ERROR_RESET_REQUIRED);
SAME_NUMBER(ours::kOperatingSystem, NVML_ERROR_OPERATING_SYSTEM);
SAME_NUMBER(ours::kLibRmVersionMismatch, NVML_ERROR_LIB_RM_VERSION_MISMATCH);
SAME_NUMBER(ours::kArgumentVersionMismatch, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
SAME_NUMBER(ours::kDeprecated, NVML_ERROR_DEPRECATED);
SAME_NUMBER(ours::kUnknown, NVML_ERROR_UNKNOWN);

SAME_NUMBER(ours::kNameBytes, NVML_DEVICE_NAME_V2_BUFFER_SIZE);
SAME_NUMBER(ours::kNameBytes, NVML_DEVICE_UUID_V2_BUFFER_SIZE);
static_assert(ours::kNameBytes >= NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE);
SAME_NUMBER(ours::kClockSm, NVML_CLOCK_SM);
SAME_NUMBER(ours::kClockMemory, NVML_CLOCK_MEM);
SAME_NUMBER(ours::kTemperatureGpu, NVML_TEMPERATURE_GPU);
SAME_NUMBER(ours::kEccCorrected, NVML_MEMORY_ERROR_TYPE_CORRECTED);
SAME_NUMBER(ours::kEccUncorrected, NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
SAME_NUMBER(ours::kEccVolatile, NVML_VOLATILE_ECC);
SAME_NUMBER(ours::kEventXid, nvmlEventTypeXidCriticalError);
SAME_NUMBER(ours::kReasonHardThermal, nvmlClocksThrottleReasonHwThermalSlowdown);
SAME_NUMBER(ours::kReasonPowerBrake, nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
SAME_NUMBER(ours::kReasonSoftThermal, nvmlClocksThrottleReasonSwThermalSlowdown);

SAME_NUMBER(ours::kFieldThrottlePowerNs, NVML_FI_DEV_PERF_POLICY_POWER);
SAME_NUMBER(ours::kFieldThrottleThermalNs, NVML_FI_DEV_PERF_POLICY_THERMAL);
SAME_NUMBER(ours::kFieldNvlinkSentKib, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX);
SAME_NUMBER(ours::kFieldNvlinkReceivedKib, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX);
#ifdef NVML_FI_DEV_POWER_INSTANT  // older drivers report the field as not supported
SAME_NUMBER(ours::kFieldPowerInstantMw, NVML_FI_DEV_POWER_INSTANT);
#endif
#ifdef NVML_FI_DEV_PCIE_COUNT_TX_BYTES
SAME_NUMBER(ours::kFieldPcieSentBytes, NVML_FI_DEV_PCIE_COUNT_TX_BYTES);
SAME_NUMBER(ours::kFieldPcieReceivedBytes, NVML_FI_DEV_PCIE_COUNT_RX_BYTES);
#endif
static_assert(ours::kAllLinks ==
              UINT32_MAX);  // "scopeId UINT_MAX: all links", in the comment above field 138

SAME_NUMBER(ours::ValueType::kDouble, NVML_VALUE_TYPE_DOUBLE);
SAME_NUMBER(ours::ValueType::kUnsignedInt, NVML_VALUE_TYPE_UNSIGNED_INT);
SAME_NUMBER(ours::ValueType::kUnsignedLong, NVML_VALUE_TYPE_UNSIGNED_LONG);
SAME_NUMBER(ours::ValueType::kUnsignedLongLong, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
SAME_NUMBER(ours::ValueType::kSignedLongLong, NVML_VALUE_TYPE_SIGNED_LONG_LONG);
#ifdef NVML_FI_DEV_POWER_INSTANT  // added in 12.2, like that type; no field of older drivers has it
SAME_NUMBER(ours::ValueType::kSignedInt, NVML_VALUE_TYPE_SIGNED_INT);
#endif

SAME_SIZE(ours::Value, nvmlValue_t);
SAME_SIZE(ours::FieldValue, nvmlFieldValue_t);
SAME_FIELD(ours::FieldValue, field_id, nvmlFieldValue_t, fieldId);
SAME_FIELD(ours::FieldValue, scope_id, nvmlFieldValue_t, scopeId);
SAME_FIELD(ours::FieldValue, timestamp_us, nvmlFieldValue_t, timestamp);
SAME_FIELD(ours::FieldValue, latency_us, nvmlFieldValue_t, latencyUsec);
SAME_FIELD(ours::FieldValue, value_type, nvmlFieldValue_t, valueType);
SAME_FIELD(ours::FieldValue, result, nvmlFieldValue_t, nvmlReturn);
static_assert(offsetof(ours::FieldValue, value) == offsetof(nvmlFieldValue_t, value));

SAME_SIZE(ours::Utilization, nvmlUtilization_t);
SAME_FIELD(ours::Utilization, gpu, nvmlUtilization_t, gpu);
SAME_FIELD(ours::Utilization, memory, nvmlUtilization_t, memory);

SAME_SIZE(ours::Memory, nvmlMemory_t);
SAME_FIELD(ours::Memory, total, nvmlMemory_t, total);
SAME_FIELD(ours::Memory, free, nvmlMemory_t, free);
SAME_FIELD(ours::Memory, used, nvmlMemory_t, used);

SAME_SIZE(ours::MemoryV2, nvmlMemory_v2_t);
SAME_NUMBER(ours::kMemoryV2Version, nvmlMemory_v2);
SAME_FIELD(ours::MemoryV2, version, nvmlMemory_v2_t, version);
SAME_FIELD(ours::MemoryV2, total, nvmlMemory_v2_t, total);
SAME_FIELD(ours::MemoryV2, reserved, nvmlMemory_v2_t, reserved);
SAME_FIELD(ours::MemoryV2, free, nvmlMemory_v2_t, free);
SAME_FIELD(ours::MemoryV2, used, nvmlMemory_v2_t, used);

SAME_SIZE(ours::ProcessInfo, nvmlProcessInfo_v2_t);
SAME_FIELD(ours::ProcessInfo, pid, nvmlProcessInfo_v2_t, pid);
SAME_FIELD(ours::ProcessInfo, used_memory, nvmlProcessInfo_v2_t, usedGpuMemory);
SAME_FIELD(ours::ProcessInfo, gpu_instance_id, nvmlProcessInfo_v2_t, gpuInstanceId);
SAME_FIELD(ours::ProcessInfo, compute_instance_id, nvmlProcessInfo_v2_t, computeInstanceId);
static_assert(ours::kMemoryNotAvailable == static_cast<unsigned long long>(NVML_VALUE_NOT_AVAILABLE));

SAME_SIZE(ours::ProcessUtilization, nvmlProcessUtilizationSample_t);
SAME_FIELD(ours::ProcessUtilization, pid, nvmlProcessUtilizationSample_t, pid);
SAME_FIELD(ours::ProcessUtilization, timestamp_us, nvmlProcessUtilizationSample_t, timeStamp);
SAME_FIELD(ours::ProcessUtilization, sm_percent, nvmlProcessUtilizationSample_t, smUtil);
SAME_FIELD(ours::ProcessUtilization, memory_percent, nvmlProcessUtilizationSample_t, memUtil);
SAME_FIELD(ours::ProcessUtilization, encoder_percent, nvmlProcessUtilizationSample_t, encUtil);
SAME_FIELD(ours::ProcessUtilization, decoder_percent, nvmlProcessUtilizationSample_t, decUtil);

SAME_SIZE(ours::EventData, nvmlEventData_t);
SAME_FIELD(ours::EventData, device, nvmlEventData_t, device);
SAME_FIELD(ours::EventData, type, nvmlEventData_t, eventType);
SAME_FIELD(ours::EventData, data, nvmlEventData_t, eventData);
SAME_FIELD(ours::EventData, gpu_instance_id, nvmlEventData_t, gpuInstanceId);
SAME_FIELD(ours::EventData, compute_instance_id, nvmlEventData_t, computeInstanceId);

SAME_NUMBER(ours::kGpmGraphicsUtil, NVML_GPM_METRIC_GRAPHICS_UTIL);
SAME_NUMBER(ours::kGpmSmUtil, NVML_GPM_METRIC_SM_UTIL);
SAME_NUMBER(ours::kGpmSmOccupancy, NVML_GPM_METRIC_SM_OCCUPANCY);
SAME_NUMBER(ours::kGpmIntegerUtil, NVML_GPM_METRIC_INTEGER_UTIL);
SAME_NUMBER(ours::kGpmAnyTensorUtil, NVML_GPM_METRIC_ANY_TENSOR_UTIL);
SAME_NUMBER(ours::kGpmDfmaTensorUtil, NVML_GPM_METRIC_DFMA_TENSOR_UTIL);
SAME_NUMBER(ours::kGpmHmmaTensorUtil, NVML_GPM_METRIC_HMMA_TENSOR_UTIL);
SAME_NUMBER(ours::kGpmImmaTensorUtil, NVML_GPM_METRIC_IMMA_TENSOR_UTIL);
SAME_NUMBER(ours::kGpmDramBwUtil, NVML_GPM_METRIC_DRAM_BW_UTIL);
SAME_NUMBER(ours::kGpmFp64Util, NVML_GPM_METRIC_FP64_UTIL);
SAME_NUMBER(ours::kGpmFp32Util, NVML_GPM_METRIC_FP32_UTIL);
SAME_NUMBER(ours::kGpmFp16Util, NVML_GPM_METRIC_FP16_UTIL);
SAME_NUMBER(ours::kGpmPcieTxPerSec, NVML_GPM_METRIC_PCIE_TX_PER_SEC);
SAME_NUMBER(ours::kGpmPcieRxPerSec, NVML_GPM_METRIC_PCIE_RX_PER_SEC);
SAME_NUMBER(ours::kGpmNvlinkRxPerSec, NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC);
SAME_NUMBER(ours::kGpmNvlinkTxPerSec, NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC);

SAME_SIZE(ours::GpmSupport, nvmlGpmSupport_t);
SAME_NUMBER(ours::kGpmSupportVersion, NVML_GPM_SUPPORT_VERSION);
SAME_FIELD(ours::GpmSupport, version, nvmlGpmSupport_t, version);
SAME_FIELD(ours::GpmSupport, supported, nvmlGpmSupport_t, isSupportedDevice);

SAME_SIZE(ours::GpmMetric, nvmlGpmMetric_t);
SAME_FIELD(ours::GpmMetric, id, nvmlGpmMetric_t, metricId);
SAME_FIELD(ours::GpmMetric, result, nvmlGpmMetric_t, nvmlReturn);
SAME_FIELD(ours::GpmMetric, value, nvmlGpmMetric_t, value);
static_assert(offsetof(ours::GpmMetric, short_name) == offsetof(nvmlGpmMetric_t, metricInfo));

SAME_NUMBER(ours::kGpmMetricsGetVersion, NVML_GPM_METRICS_GET_VERSION);
SAME_FIELD(ours::GpmMetricsGet, version, nvmlGpmMetricsGet_t, version);
SAME_FIELD(ours::GpmMetricsGet, count, nvmlGpmMetricsGet_t, numMetrics);
SAME_FIELD(ours::GpmMetricsGet, sample1, nvmlGpmMetricsGet_t, sample1);
SAME_FIELD(ours::GpmMetricsGet, sample2, nvmlGpmMetricsGet_t, sample2);
static_assert(offsetof(ours::GpmMetricsGet, metrics) == offsetof(nvmlGpmMetricsGet_t, metrics));
static_assert(sizeof(ours::GpmMetricsGet) >= sizeof(nvmlGpmMetricsGet_t),
              "the library may fill all of its own array");

// The argument is the oldest driver branch that these headers are for.
int main(int, char** arguments) {
  std::printf("gpm_metrics %zu %zu\n", sizeof(ours::GpmMetricsGet::metrics) / sizeof(ours::GpmMetric),
              sizeof(nvmlGpmMetricsGet_t::metrics) / sizeof(nvmlGpmMetric_t));
  unsigned theirs[3] = {};
#ifdef NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN
  theirs[0] = NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN;
  theirs[1] = NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN;
  theirs[2] = NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN;
#endif
  const auto fields = ours::SlowdownFieldsOf(arguments[1]).value_or(ours::SlowdownFields{});
  std::printf("software_thermal %u %u\n", fields.software_thermal, theirs[0]);
  std::printf("hardware_thermal %u %u\n", fields.hardware_thermal, theirs[1]);
  std::printf("power_brake %u %u\n", fields.power_brake, theirs[2]);
}
