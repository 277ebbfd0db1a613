#include "agent/allocation.h"

#include <algorithm>

#include "base/text.h"

namespace fullbore::agent {

namespace {

constexpr std::string_view kNvidiaMajor = "195";  // Documentation/admin-guide/devices.txt
constexpr int64_t kMostDevices = 254;             // beyond are nvidia-modeset and nvidiactl

std::string_view ValueOf(std::string_view environment, std::string_view name) {
  for (const std::string_view variable : Split(environment, '\0')) {
    if (variable.starts_with(name) && variable.substr(name.size()).starts_with('='))
      return variable.substr(name.size() + 1);
  }
  return "";
}

// "0,2-3"
std::set<uint32_t> NumbersIn(std::string_view list) {
  std::set<uint32_t> numbers;
  for (const std::string_view part : Split(list, ',')) {
    const size_t dash = part.find('-');
    const auto first = ParseInt(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : ParseInt(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last >= kMostDevices) continue;
    for (int64_t number = *first; number <= *last; ++number) numbers.insert(static_cast<uint32_t>(number));
  }
  return numbers;
}

std::set<std::string> UuidsIn(std::string_view list) {
  std::set<std::string> uuids;
  for (const std::string_view part : Split(list, ',')) {
    constexpr size_t kPrefix = 4;  // "GPU-", and at least a character
    if (part.size() > kPrefix && (part.starts_with("GPU-") || part.starts_with("MIG-"))) uuids.emplace(part);
  }
  return uuids;
}

}  // namespace

bool Includes(const Allocation& allocation, const Named& device) {
  const auto begins = [&](const std::string& uuid) { return device.uuid.starts_with(uuid); };
  if (std::ranges::any_of(allocation.uuids, begins)) return true;
  if (device.instance) return false;
  return allocation.indexes.contains(device.index) ||
         (device.minor_number && allocation.minor_numbers.contains(*device.minor_number));
}

Allocation AllocationInEnvironment(std::string_view environment) {
  Allocation given;
  for (const char* variable : {"SLURM_JOB_GPUS", "SLURM_STEP_GPUS"}) {
    given.minor_numbers = NumbersIn(ValueOf(environment, variable));
    if (!given.empty()) return given;
  }
  const std::string_view of_container = ValueOf(environment, "NVIDIA_VISIBLE_DEVICES");
  given.indexes = NumbersIn(of_container);
  given.uuids = UuidsIn(of_container);
  given.uuids.merge(UuidsIn(ValueOf(environment, "CUDA_VISIBLE_DEVICES")));
  return given;
}

Allocation AllocationInDevicesList(std::string_view list) {
  Allocation given;
  for (const std::string_view line : Split(list, '\n')) {
    const std::vector<std::string_view> words = Words(line);
    if (words.size() < 2 || words[0] != "c") continue;
    const size_t colon = words[1].find(':');
    if (colon == std::string_view::npos || words[1].substr(0, colon) != kNvidiaMajor) continue;
    given.minor_numbers.merge(NumbersIn(words[1].substr(colon + 1)));
  }
  return given;
}

}  // namespace fullbore::agent
