#include "measure/probe/nvml/nvml_library.h"

#include <dlfcn.h>

#include <cstdlib>

namespace fullbore::probe::nvml {

Result<std::unique_ptr<Library>> Library::Open() {
  const char* const chosen = std::getenv("FULLBORE_NVML");
  const std::string path = chosen != nullptr && *chosen != '\0' ? chosen : "libnvidia-ml.so.1";
  void* const handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const reason = dlerror();
    return Error{ErrorCode::kNotFound, "cannot load '" + path + "': " + (reason ? reason : "unknown"),
                 "without it GPUs cannot be recorded; it comes with the NVIDIA driver"};
  }
  std::unique_ptr<Library> library(new Library(handle));
  library->FindFunctions();
  return library;
}

Library::~Library() { dlclose(handle_); }

void Library::FindFunctions() {
  // Several names: takes the first one that exists.
  const auto find = [this](auto& function, std::initializer_list<const char*> names) {
    for (const char* symbol : names) {
      if (!function) function.Set(dlsym(handle_, symbol));
    }
  };
  find(init, {"nvmlInit_v2"});
  find(shutdown, {"nvmlShutdown"});
  find(driver_version, {"nvmlSystemGetDriverVersion"});
  find(cuda_driver_version, {"nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"});
  find(device_count, {"nvmlDeviceGetCount_v2"});
  find(device_by_index, {"nvmlDeviceGetHandleByIndex_v2"});
  find(name, {"nvmlDeviceGetName"});
  find(uuid, {"nvmlDeviceGetUUID"});
  find(mig_mode, {"nvmlDeviceGetMigMode"});
  find(max_mig_devices, {"nvmlDeviceGetMaxMigDeviceCount"});
  find(mig_device_by_index, {"nvmlDeviceGetMigDeviceHandleByIndex"});
  find(gpu_instance_id, {"nvmlDeviceGetGpuInstanceId"});
  find(minor_number, {"nvmlDeviceGetMinorNumber"});
  find(utilization, {"nvmlDeviceGetUtilizationRates"});
  find(memory, {"nvmlDeviceGetMemoryInfo"});
  find(memory_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  find(power_mw, {"nvmlDeviceGetPowerUsage"});
  find(power_limit_mw, {"nvmlDeviceGetEnforcedPowerLimit"});
  find(energy_mj, {"nvmlDeviceGetTotalEnergyConsumption"});
  find(clock_mhz, {"nvmlDeviceGetClockInfo"});
  find(max_clock_mhz, {"nvmlDeviceGetMaxClockInfo"});
  find(temperature, {"nvmlDeviceGetTemperature"});
  find(throttle_reasons,
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  find(ecc_errors, {"nvmlDeviceGetTotalEccErrors"});
  find(remapped_rows, {"nvmlDeviceGetRemappedRows"});
  // Drivers 535.43 to 535.86 fill _v3 with larger entries under the same name. _v2
  // gives us the same everywhere.
  find(compute_processes,
       {"nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses_v3"});
  find(graphics_processes,
       {"nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses_v3"});
  find(mps_processes,
       {"nvmlDeviceGetMPSComputeRunningProcesses_v2", "nvmlDeviceGetMPSComputeRunningProcesses_v3"});
  find(process_utilization, {"nvmlDeviceGetProcessUtilization"});
  find(field_values, {"nvmlDeviceGetFieldValues"});
  find(event_set_create, {"nvmlEventSetCreate"});
  find(event_set_free, {"nvmlEventSetFree"});
  find(register_events, {"nvmlDeviceRegisterEvents"});
  find(event_wait, {"nvmlEventSetWait_v2"});
  find(gpm_support, {"nvmlGpmQueryDeviceSupport"});
  find(gpm_sample_alloc, {"nvmlGpmSampleAlloc"});
  find(gpm_sample_free, {"nvmlGpmSampleFree"});
  find(gpm_sample_get, {"nvmlGpmSampleGet"});
  find(gpm_mig_sample_get, {"nvmlGpmMigSampleGet"});
  find(gpm_metrics_get, {"nvmlGpmMetricsGet"});
}

}  // namespace fullbore::probe::nvml
