#include "record/activity.h"

#include <array>
#include <cstddef>

namespace fullbore::record {

namespace {

constexpr std::array<std::string_view, kActivityCount> kNames = {
    "unknown", "queue",   "lock",     "future",  "subprocess",  "network",          "file",
    "sleep",   "logging", "plotting", "metrics", "environment", "data_preparation", "tokenising",
    "python",  "hook",    "anomaly"};

}  // namespace

std::string_view Name(Activity activity) { return kNames[static_cast<size_t>(activity)]; }

std::optional<Activity> ActivityNamed(std::string_view name) {
  for (size_t i = 0; i < kActivityCount; ++i) {
    if (kNames[i] == name) return static_cast<Activity>(i);
  }
  return std::nullopt;
}

Activity ActivityNumbered(int64_t number) {
  const bool known = number >= 0 && number < static_cast<int64_t>(kActivityCount);
  return known ? static_cast<Activity>(number) : Activity::kUnknown;
}

}  // namespace fullbore::record
