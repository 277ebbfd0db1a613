// A recording of a run that trains, a second a window, on a machine with one device.
#pragma once

#include "base/clock.h"
#include "record/metrics.h"
#include "record/recording.h"

namespace fullbore::watch::testing {

inline constexpr int64_t kBeginNs = 1000 * kNsPerSecond;

// Two steps a second, half of each waiting for data, eight samples a step; the device uses what its number of the second
// is, in percent.
inline record::Recording TrainedRun(int64_t seconds, bool ended) {
  record::Recording recording;
  recording.id = "2026-11-21-0915-train";
  recording.wall_offset_ns = 500 * kNsPerSecond;
  recording.machine["hostname"] = "node7";
  record::Stage& stage = recording.stages.emplace_back();
  stage.name = "train";
  stage.command = {"python", "train.py"};
  stage.begin_ns = kBeginNs;
  stage.end_ns = kBeginNs + seconds * kNsPerSecond;
  if (ended) stage.exit_status = 0;
  stage.state = ended ? record::StageState::kEnded : record::StageState::kRunning;
  record::RankInfo& rank = stage.ranks.emplace_back();
  rank.samples_known = true;
  record::Series& power = stage.series.emplace_back();
  power.key = record::KeyOf(record::Metric::kGpuPower, {{"gpu", "0"}});
  for (int64_t i = 0; i < seconds; ++i) {
    record::StepWindow& window = rank.windows.emplace_back();
    window.begin_ns = kBeginNs + i * kNsPerSecond;
    window.end_ns = window.begin_ns + kNsPerSecond;
    window.first_step = 2 * i;
    window.steps = 2;
    window.samples = 16;
    window.share_ns[record::Index(record::Share::kDataWait)] = kNsPerSecond / 2;
    window.share_ns[record::Index(record::Share::kForward)] = kNsPerSecond / 2;
    power.readings.push_back({window.end_ns, static_cast<double>(i)});
  }
  return recording;
}

}  // namespace fullbore::watch::testing
