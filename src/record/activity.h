// What the training thread does while it does not train, as the line sampler classes it from the whole stack
// (python/fullbore/hook/sampling/activities.txt is the table of what tells them apart).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fullbore::record {

// The numbers are those of the channel; the names are those of the run file. Neither ever changes.
enum class Activity : uint8_t {
  kUnknown = 0,
  kQueue = 1,             // waits for a queue or a pipe
  kLock = 2,              // waits for a lock or another thread
  kFuture = 3,            // waits for a future, or in asyncio's loop
  kSubprocess = 4,        // waits for a program that it started
  kNetwork = 5,           // waits for a socket
  kFile = 6,              // reads or writes files
  kSleep = 7,             // time.sleep
  kLogging = 8,           // prints, logs, writes to a tracker
  kPlotting = 9,          // draws figures
  kMetrics = 10,          // computes metrics
  kEnvironment = 11,      // steps an environment, or samples a policy's actions: a rollout
  kDataPreparation = 12,  // decodes, converts, stacks what becomes a batch
  kTokenising = 13,       // turns text into tokens
  kPython = 14,           // the interpreter itself
  kHook = 15,             // runs what the script or a tracker has hooked into the passes: histograms, norms
  kAnomaly = 16,          // keeps the stack of an operation for anomaly detection
};
inline constexpr size_t kActivityCount = 17;

std::string_view Name(Activity activity);  // "data_preparation"
std::optional<Activity> ActivityNamed(std::string_view name);
Activity ActivityNumbered(int64_t number);  // kUnknown for a number that is none

}  // namespace fullbore::record
