// Which field numbers of nvmlDeviceGetFieldValues tell how long a GPU was slowed down, and why. The
// vendor used these numbers twice:
//
//   driver branch           headers of            251, 252, 253                  269, 270, 271
//   570 and older           CUDA 12.8 and older   power-smoothing settings       none
//   575, 580 (to 589)       CUDA 12.9, 13.0       slowdown by software's and     power-smoothing settings
//                                                 by hardware's thermal limit,
//                                                 by the power brake
//   590 and newer           CUDA 13.1 and newer   power-smoothing settings       the three slowdowns
//
// tests/vendor/test_vendor_headers.py checks this table against the headers themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fullbore::probe::nvml {

struct SlowdownFields {
  uint32_t software_thermal = 0;  // NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, ns
  uint32_t hardware_thermal = 0;  // ..._HW_THERM_SLOWDOWN, ns
  uint32_t power_brake = 0;       // ..._HW_POWER_BRAKE_SLOWDOWN, ns
};

// `driver_version` as nvmlSystemGetDriverVersion returns it: "580.82.07". Nothing if this driver has no such
// counters or its version cannot be parsed: a wrong number would report throttling that never happened.
std::optional<SlowdownFields> SlowdownFieldsOf(std::string_view driver_version);

}  // namespace fullbore::probe::nvml
