// What comes to an end: memory and disks, by the rate at which they have filled lately.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/text.h"
#include "explain/diagnose/growth.h"
#include "explain/diagnose/thresholds.h"
#include "watch/alert/sight.h"

namespace fullbore::watch {

namespace {

// A trend is believed for twenty times as long as it was seen, from this long on.
constexpr int64_t kTimesAsLong = 20, kShortestSightNs = 20 * kNsPerSecond;
constexpr double kNearly = 2;         // times `within`: an alert is over only beyond it
constexpr double kLeastRise = 0.005;  // of the size, while it was seen: less is nothing
constexpr double kNoneLeft = 0.985;   // memory: what the kernel itself keeps free is not to be had

struct Trend {
  double used = 0;
  double left = 0;               // bytes
  std::optional<double> per_s;   // where it rises steadily
  std::optional<double> ends_s;  // at that rate
  bool rises = false;            // in any way
};

std::optional<Trend> TrendOf(const Filling& filling, int64_t within_ns, const Moment& moment) {
  if (filling.used.empty()) return std::nullopt;
  // What a training takes while it starts it takes once.
  const int64_t since_ns = moment.past().first_step_ns();
  std::vector<record::Reading> readings;
  for (const record::Reading& reading : filling.used) {
    if (reading.t_ns >= since_ns) readings.push_back(reading);
  }
  Trend trend;
  trend.used = filling.used.back().value;
  trend.left = std::max(0.0, filling.size - trend.used);
  const int64_t seen_ns = readings.empty() ? 0 : readings.back().t_ns - readings.front().t_ns;
  if (seen_ns < std::max(kShortestSightNs, within_ns / kTimesAsLong)) return trend;
  trend.rises = readings.back().value > readings.front().value;
  const auto growth = diagnose::SteadyGrowth(readings);
  if (growth && growth->low > 0 && growth->rise > kLeastRise * filling.size) {
    trend.per_s = growth->per_s;
    trend.ends_s = trend.left / growth->per_s;
  }
  return trend;
}

Sight LookAtFilling(const Filling& filling, int64_t within_ns, double full, const Moment& moment) {
  const auto trend = TrendOf(filling, within_ns, moment);
  if (!trend) return {};
  const double within_s = static_cast<double>(within_ns) / 1e9;
  const double filled = trend->used / filling.size;
  const bool soon = trend->ends_s && *trend->ends_s < within_s;
  const bool near = trend->ends_s ? *trend->ends_s < kNearly * within_s : trend->rises;
  Sight sight;
  sight.state = soon || filled >= full          ? Sight::State::kHolds
                : near || filled >= full - 0.01 ? Sight::State::kBetween
                                                : Sight::State::kOver;
  sight.what = fmt::format("{} is {} full, with {} left", filling.what, FormatPercent(filled),
                           FormatBytes(trend->left));
  if (soon) {
    sight.what += fmt::format(", enough for {} at {}/s", FormatDuration(std::llround(*trend->ends_s * 1e9)),
                              FormatBytes(*trend->per_s));
  }
  sight.evidence = {{"filled", filled, "ratio", "proc", "", {}, {}},
                    {"left", trend->left, "bytes", "proc", "", {}, {}}};
  if (trend->per_s) sight.evidence.push_back({"growth", *trend->per_s, "bytes/s", "proc", "", {}, {}});
  return sight;
}

// The one that is worst off.
Sight Worst(bool disks, int64_t within_ns, double full, const Moment& moment) {
  Sight worst;
  for (const auto& [name, filling] : moment.past().fillings()) {
    if (filling.is_disk != disks) continue;
    Sight sight = LookAtFilling(filling, within_ns, full, moment);
    if (sight.state > worst.state) worst = std::move(sight);
  }
  return worst;
}

}  // namespace

Sight MemoryEnds::Look(const View& view) const {
  Sight sight = Worst(/*disks=*/false, within_ns, kNoneLeft, view.moment);
  sight.fix = {"save a checkpoint now; fullbore help memory-growth says how to find what grows"};
  return sight;
}

Sight DiskFills::Look(const View& view) const {
  Sight sight = Worst(/*disks=*/true, within_ns, above, view.moment);
  sight.fix = {
      "remove old checkpoints and logs, or keep fewer (save_total_limit, save_top_k): the next one may fail"};
  return sight;
}

}  // namespace fullbore::watch
