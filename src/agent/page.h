// What an agent says of its node as OpenMetrics text. docs/fleet.md lists the names. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "agent/device_watch.h"

namespace fullbore::agent {

inline constexpr size_t kMostSeries = 5000;

// What the agent itself takes, under the names that every exporter has.
struct Self {
  std::string version;
  double start_unix_s = 0;
  std::optional<double> cpu_s, resident_bytes;
};

struct NodeView {
  int64_t now_ns = 0;
  Self self;
  std::map<std::string, std::string> facts;
  std::map<record::SeriesKey, double> readings;  // of the host
  std::optional<DeviceView> devices;             // nothing before the first look
};

// Answers of NVML that are older are not shown: what a device does is not known then.
inline constexpr int64_t kStaleNs = 20'000'000'000;
bool IsStale(const NodeView& node);

std::string MetricsPage(const NodeView& node, size_t most_series = kMostSeries);

}  // namespace fullbore::agent
