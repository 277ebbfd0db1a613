#include "tune/trial/memory.h"

#include <algorithm>
#include <map>

#include "record/metrics.h"
#include "record/run_reader.h"

namespace fullbore::tune {

namespace {

using record::Metric;
using ByTime = std::map<int64_t, double>;

// Sums over all series of a metric with these labels. Series of single ranks are parts of those without: they are not
// counted again.
ByTime SumsOf(const record::Stage& stage, Metric metric, const record::Labels& with = {}) {
  ByTime sums;
  for (const record::Series& series : stage.series) {
    if (!IsOf(series.key, metric) || series.key.labels.contains("rank")) continue;
    const bool wanted = std::all_of(with.begin(), with.end(), [&](const auto& label) {
      const auto at = series.key.labels.find(label.first);
      return at != series.key.labels.end() && at->second == label.second;
    });
    if (!wanted) continue;
    for (const record::Reading& reading : series.readings) sums[reading.t_ns] += reading.value;
  }
  return sums;
}

std::optional<int64_t> MostOf(const ByTime& readings) {
  std::optional<int64_t> most;
  for (const auto& [t_ns, value] : readings) most = std::max(most.value_or(0), static_cast<int64_t>(value));
  return most;
}

// The largest ratio of `used` to the last of `limits`.
std::optional<double> Fullest(const ByTime& used, const ByTime& limits) {
  if (limits.empty() || limits.rbegin()->second <= 0) return std::nullopt;
  std::optional<double> most;
  for (const auto& [t_ns, bytes] : used) most = std::max(most.value_or(0), bytes / limits.rbegin()->second);
  return most;
}

// Where both were read; neither is less than nothing.
ByTime Difference(const ByTime& from, const ByTime& what) {
  ByTime rest;
  for (const auto& [t_ns, bytes] : from) {
    const auto at = what.find(t_ns);
    if (at != what.end()) rest[t_ns] = std::max(0.0, bytes - at->second);
  }
  return rest;
}

ByTime Sum(ByTime readings, const ByTime& more) {
  for (auto& [t_ns, bytes] : readings) {
    const auto at = more.find(t_ns);
    if (at != more.end()) bytes += at->second;
  }
  return readings;
}

// A step holds its activations for a moment, and the memory is read once a second: what the processes held between the
// readings is added to each. The cache of a cgroup could be dropped.
std::optional<double> HostFilled(const record::Stage& stage) {
  const auto read = [&](Metric metric) { return SumsOf(stage, metric); };
  const ByTime between = Difference(read(Metric::kProcessMemoryPeak), read(Metric::kProcessMemory));
  const ByTime of_group = Difference(read(Metric::kCgroupMemoryUsed), read(Metric::kCgroupMemoryCache));
  return std::max(  // what is absent is less than anything
      Fullest(Sum(of_group, between), read(Metric::kCgroupMemoryLimit)),
      Fullest(Sum(read(Metric::kMemoryUsed), between), read(Metric::kMemoryTotal)));
}

std::optional<double> DevicesFilled(const record::Stage& stage) {
  std::optional<double> most;
  for (const record::Series& series : stage.series) {
    const auto gpu = series.key.labels.find("gpu"), owner = series.key.labels.find("owner");
    if (!IsOf(series.key, Metric::kGpuProcessMemory) || gpu == series.key.labels.end()) continue;
    if (owner == series.key.labels.end() || owner->second != "command") continue;
    const record::Labels device = {{"gpu", gpu->second}};
    most = std::max(most, Fullest(SumsOf(stage, Metric::kGpuMemoryUsed, device),
                                  SumsOf(stage, Metric::kGpuMemoryTotal, device)));
  }
  return most;
}

}  // namespace

MemoryUse MemoryUseOf(const record::Stage& stage) {
  const auto on_devices = MostOf(SumsOf(stage, Metric::kGpuProcessMemory, {{"owner", "command"}}));
  if (on_devices.value_or(0) > 0) return {on_devices, DevicesFilled(stage)};
  const auto on_host = std::max(MostOf(SumsOf(stage, Metric::kProcessMemoryPeak)),
                                MostOf(SumsOf(stage, Metric::kProcessMemory)));
  if (on_host.value_or(0) > 0) return {on_host, HostFilled(stage)};
  return {};
}

MemoryUse MemoryUseOf(const std::string& run_file) {
  if (run_file.empty()) return {};
  const auto recording = record::ReadRun(run_file);
  if (!recording || recording->stages.empty()) return {};
  return MemoryUseOf(recording->stages.front());
}

}  // namespace fullbore::tune
