// What a step's wall time is divided into. The shares of a step sum to its wall time to the nanosecond.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fullbore::record {

enum class Share : uint8_t {
  // Where device activity is recorded.
  kCompute,      // a compute kernel runs on this rank's device
  kCommExposed,  // a collective runs and no compute kernel does; host: the training thread waits for other
                 // ranks
  kCopyExposed,  // a copy or memset runs and neither of the above does
  kDataWait,   // the training thread is inside the data loader's `next` (with device activity: and the device
               // idles)
  kSync,       // device idle after the host blocked in a synchronisation and had to launch anew
  kLaunch,     // device idle while the host executes code that leads to the next launch
  kHostOther,  // the host does something besides training: checkpoint, logging, validation, garbage
               // collection
  kGap,        // device idle between two kernels that were both already queued
  // The training thread's phases, where no device activity is recorded.
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

// Parts of host_other that can be named. They sum to at most host_other.
enum class HostOther : uint8_t { kCheckpoint, kValidation, kGarbageCollection, kUnnamed };
inline constexpr size_t kHostOtherCount = 4;
std::string_view Name(HostOther part);

}  // namespace fullbore::record
