#include "tune/proof/room.h"

#include <fmt/format.h>

#include <algorithm>

#include "measure/probe/proc/memory_left.h"

namespace fullbore::tune {

namespace {

using probe::nvml::DeviceMemory;

constexpr int64_t kUsesDevice = 64'000'000;  // bytes: a context of a library takes more

// `all`: of which a tenth is left to others.
std::optional<std::string> NoRoom(const std::string& where, int64_t before, int64_t all, int64_t first,
                                  int64_t second) {
  if (first + second + all / 10 <= before) return std::nullopt;
  const auto gigabytes = [](int64_t bytes) { return static_cast<double>(bytes) / 1e9; };
  return fmt::format("there is not enough memory for both{}: they take {:.1f} and {:.1f} GB of {:.1f} GB",
                     where, gigabytes(first), gigabytes(second), gigabytes(before));
}

// Of a device, what a trial may need of it: it is told by how full the fullest one was, of which others held a part.
int64_t NeedOn(const DeviceMemory& before, int64_t taken, const MemoryUse& use) {
  const auto filled = static_cast<int64_t>(use.filled.value_or(0) * static_cast<double>(before.total));
  return std::max(taken, filled - (before.total - before.free));
}

}  // namespace

MemoryNow LookAtMemory() { return {probe::MemoryLeft(), probe::nvml::MemoryOfDevices()}; }

bool AnyDeviceWasTaken(const MemoryNow& before, const MemoryNow& after) {
  for (size_t i = 0; i < std::min(before.devices.size(), after.devices.size()); ++i) {
    if (before.devices[i].free - after.devices[i].free > kUsesDevice) return true;
  }
  return false;
}

std::optional<std::string> NoRoomForBoth(const MemoryNow& before, const MemoryNow& beside, bool uses_device,
                                         const MemoryUse& first, const MemoryUse& second) {
  if (!before.host || !beside.host) return "how much memory is left is not known";
  const int64_t left = *before.host, taken = left - *beside.host;
  if (!uses_device) {
    return NoRoom("", left, left, std::max(taken, first.peak_bytes.value_or(0)),
                  std::max(taken, second.peak_bytes.value_or(0)));
  }
  if (auto why = NoRoom("", left, left, taken, taken)) return why;
  if (beside.devices.empty() || beside.devices.size() != before.devices.size())
    return "how much memory their devices have left is not known";
  for (size_t i = 0; i < beside.devices.size(); ++i) {
    const DeviceMemory &then = before.devices[i], &now = beside.devices[i];
    if (then.free - now.free <= kUsesDevice) continue;  // not theirs
    if (auto why = NoRoom(" on " + now.title, then.free, now.total, NeedOn(then, then.free - now.free, first),
                          NeedOn(then, then.free - now.free, second)))
      return why;
  }
  return std::nullopt;
}

}  // namespace fullbore::tune
