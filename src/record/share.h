// The shares of a step's wall time. They sum to the wall time exactly, to the nanosecond.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fullbore::record {

enum class Share : uint8_t {
  // Where device activity is recorded.
  kCompute,      // a compute kernel runs on this rank's device
  kCommExposed,  // a collective and no compute kernel runs; host: the training thread waits for other ranks
  kCopyExposed,  // a copy or memset runs and neither of the above
  // The training thread is inside the data loader's `next`, or waits for (or runs) what feeds it instead of
  // one; any device is idle.
  kDataWait,
  kSync,       // device idle because the host blocked in a synchronisation and then had to launch again
  kLaunch,     // device idle while the host executes code that leads to the next launch
  kHostOther,  // the host does something else: checkpoint, logging, validation, garbage collection
  kGap,        // device idle between two kernels that were both already queued
  // The phases of the training thread, where no device activity is recorded.
  kH2d,
  kForward,
  kBackward,
  kOptimizer,
};
inline constexpr size_t kShareCount = 12;

using ShareTimes = std::array<int64_t, kShareCount>;  // nanoseconds, indexed by Share

constexpr size_t Index(Share share) { return static_cast<size_t>(share); }
std::string_view Name(Share share);  // "data_wait": as in the report and the run file
std::optional<Share> ShareNamed(std::string_view name);

// Parts of host_other that have a name. They sum to at most host_other. Run files know them by these numbers.
enum class HostOther : uint8_t {
  kCheckpoint,
  kValidation,
  kGarbageCollection,
  kUnnamed,
  kCompilation,
  kWithoutGradients,  // forward passes that train nothing, and of which it is not told what they are for
};
inline constexpr size_t kHostOtherCount = 6;
std::string_view Name(HostOther part);
std::optional<HostOther> HostOtherNamed(std::string_view name);

}  // namespace fullbore::record
