#include "measure/probe/nvml/slowdown_fields.h"

#include <charconv>

namespace fullbore::probe::nvml {

std::optional<SlowdownFields> SlowdownFieldsOf(std::string_view driver_version) {
  int branch = 0;
  const char* const end = driver_version.data() + driver_version.size();
  const auto [rest, error] = std::from_chars(driver_version.data(), end, branch);
  if (error != std::errc{} || rest == end || *rest != '.') return std::nullopt;
  if (branch >= 590) return SlowdownFields{269, 270, 271};
  if (branch >= 575) return SlowdownFields{251, 252, 253};
  return std::nullopt;
}

}  // namespace fullbore::probe::nvml
