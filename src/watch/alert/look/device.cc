// Devices: held and idle, lost, held back by heat.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "record/metrics.h"
#include "watch/alert/sight.h"

namespace fullbore::watch {

using record::Metric;

namespace {

// Those of NVIDIA's "XID Errors" after which the device or its memory must not be trusted; the others are errors of the
// program (13, 31, 43, 45), or were handled.
constexpr int64_t kFatalXids[] = {48, 62, 74, 79, 95, 119, 120, 140};

bool IsFatal(int64_t xid) { return std::ranges::find(kFatalXids, xid) != std::end(kFatalXids); }

// Of "GPU 0 reported Xid 79: the GPU has fallen off the bus", 79.
std::optional<int64_t> XidIn(std::string_view text) {
  constexpr std::string_view kBefore = " reported Xid ";
  const size_t at = text.find(kBefore);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + kBefore.size());
  return ParseInt(rest.substr(0, rest.find_first_not_of("0123456789")));
}

std::string DeviceOf(const record::SeriesKey& key) {
  const auto gpu = key.labels.find("gpu");
  return gpu == key.labels.end() ? "the GPU" : "GPU " + gpu->second;
}

bool Any(const record::SeriesKey&) { return true; }

// The device with the largest (or least) mean of a metric, of those that count.
struct Extreme {
  const record::Series* series = nullptr;
  double mean = 0;
};
template <typename Counts>
Extreme ExtremeOf(Metric metric, int64_t window_ns, const Moment& moment, Side side, Counts counts) {
  Extreme extreme;
  for (const record::Series& series : moment.stage().series) {
    if (!IsOf(series.key, metric) || !moment.IsOurs(series.key) || !counts(series.key)) continue;
    const auto mean = moment.Mean(series, window_ns);
    if (!mean) continue;
    const bool further = side == Side::kAbove ? *mean > extreme.mean : *mean < extreme.mean;
    if (!extreme.series || further) extreme = {&series, *mean};
  }
  return extreme;
}

// Some memory of a device belongs to the command. Nobody knows where there are no figures by process, as in containers.
bool IsHeld(const record::SeriesKey& of, int64_t window_ns, const Moment& moment) {
  const auto gpu = of.labels.find("gpu");
  if (gpu == of.labels.end()) return false;
  for (const record::Series& series : moment.stage().series) {
    const auto label = series.key.labels.find("gpu"), owner = series.key.labels.find("owner");
    const bool own = IsOf(series.key, Metric::kGpuProcessMemory) && owner != series.key.labels.end() &&
                     owner->second == "command";
    if (!own || label == series.key.labels.end() || label->second != gpu->second) continue;
    if (moment.Mean(series, window_ns).value_or(0) > 0) return true;
  }
  return false;
}

}  // namespace

Sight IdleDevice::Look(const View& view) const {
  if (!ExtremeOf(Metric::kGpuUtilization, view.window_ns, view.moment, Side::kBelow, Any).series) return {};
  const Extreme least =
      ExtremeOf(Metric::kGpuUtilization, view.window_ns, view.moment, Side::kBelow,
                [&](const record::SeriesKey& device) { return IsHeld(device, view.window_ns, view.moment); });
  Sight sight;
  sight.state = Sight::State::kOver;
  sight.what = "the run holds no device";
  if (!least.series) return sight;
  if (least.mean < 2 * below) sight.state = Sight::State::kBetween;
  if (least.mean < below) sight.state = Sight::State::kHolds;
  sight.what = fmt::format("{} is held by the run and {} busy", DeviceOf(least.series->key),
                           FormatPercent(least.mean));
  sight.evidence = {
      {"GPU utilisation", least.mean, "ratio", "nvml", record::LabelledName(least.series->key), {}, {}}};
  sight.fix = {"release it while preparing or waiting; fullbore help idle-device"};
  sight.lost = 1;
  return sight;
}

Sight LostDevice::Look(const View& view) const {
  Sight sight;
  sight.state = Sight::State::kOver;
  sight.what = "the devices answer";
  const auto lost = [&](const std::string& what, int64_t t_ns) {
    sight.state = Sight::State::kHolds;
    sight.what = what;
    sight.since_ns = t_ns;
    sight.fix = {
        "end the run, look at dmesg and nvidia-smi, and drain the node: it takes a reset or a reboot"};
    sight.lost = 1;
  };
  for (const record::Series& series : view.moment.stage().series) {
    if (!IsOf(series.key, Metric::kGpuXid)) continue;
    for (const record::Reading& reading : series.readings) {
      const int64_t xid = std::llround(reading.value);
      if (reading.t_ns <= view.moment.now_ns() && IsFatal(xid))
        lost(fmt::format("{} reported Xid {}", DeviceOf(series.key), xid), reading.t_ns);
    }
  }
  // A minute's window has forgotten the reading; the recorder's messages are all there.
  for (const record::Message& message : view.moment.stage().messages) {
    if (!message.t_ns || *message.t_ns > view.moment.now_ns() || message.source != "nvml" ||
        message.severity != record::Severity::kError)
      continue;
    if (const auto xid = XidIn(message.text); xid && !IsFatal(*xid)) continue;
    lost(message.text, *message.t_ns);
  }
  return sight;
}

Sight ThrottledDevice::Look(const View& view) const {
  const Extreme most = ExtremeOf(Metric::kGpuThrottleThermal, view.window_ns, view.moment, Side::kAbove, Any);
  if (!most.series) return {};
  Sight sight;
  sight.state = most.mean > above       ? Sight::State::kHolds
                : most.mean < above / 2 ? Sight::State::kOver
                                        : Sight::State::kBetween;
  sight.what = fmt::format("{} was held back by heat {} of the time", DeviceOf(most.series->key),
                           FormatPercent(most.mean));
  sight.evidence = {
      {"time held back by heat", most.mean, "ratio", "nvml", record::LabelledName(most.series->key), {}, {}}};
  sight.fix = {"check the cooling: nvidia-smi -q -d PERFORMANCE,TEMPERATURE; fullbore help throttle"};
  return sight;
}

}  // namespace fullbore::watch
