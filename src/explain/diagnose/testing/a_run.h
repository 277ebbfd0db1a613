// Handmade recordings, so that a test reads as what was recorded and what is found:
//
//   EXPECT_THAT(Diagnose(ATrace().InEachStep(Share::kCopyExposed, 20)), Finds("copy-bound"));
#pragma once

#include <gmock/gmock.h>

#include <utility>

#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/testing/made_run.h"

namespace fullbore::diagnose::testing {

class ARun {
 public:
  explicit ARun(record::Recording recording) : recording_(std::move(recording)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): stands for a recording
  operator record::Recording() const { return recording_; }

  // Every step, or the one with this index, takes `ms` longer in `share`.
  ARun& InEachStep(record::Share share, int64_t ms) {
    return ForEachStep([&](record::Step& step) { Lengthen(step, share, ms); });
  }
  ARun& InStep(int64_t index, record::Share share, int64_t ms) {
    return ForEachStep([&](record::Step& step) {
      if (step.index == index) Lengthen(step, share, ms);
    });
  }
  // Attributes `ms` of each step to `part` without lengthening the step.
  ARun& OfWhichEachStep(record::HostOther part, int64_t ms) {
    return ForEachStep([&](record::Step& step) {
      step.host_other_ns = {};
      step.host_other_ns[static_cast<size_t>(part)] = ms * kMs;
    });
  }
  ARun& WithSamples(int64_t step_index, int64_t samples) {
    return ForEachStep([&](record::Step& step) {
      if (step.index == step_index) step.samples = samples;
    });
  }

  ARun& Reading(record::Metric metric, double value, const record::Labels& labels = {}) {
    AddSeries(recording_, metric, value, labels, seconds_);
    return *this;
  }
  ARun& OnGpu(record::Metric metric, double value, const char* gpu = "0") {
    return Reading(metric, value, {{"gpu", gpu}});
  }
  // The readings of a metric for `seconds` after the last step.
  ARun& Then(record::Metric metric, double value, int64_t seconds) {
    record::Stage& stage = recording_.stages.front();
    const int64_t begin_ns = rank().steps.back().end_ns;
    for (record::Series& series : stage.series) {
      if (!IsOf(series.key, metric)) continue;
      std::erase_if(series.readings, [&](const record::Reading& r) { return r.t_ns > begin_ns; });
      for (int64_t t = 1; t <= seconds; ++t) series.readings.push_back({begin_ns + t * 1'000 * kMs, value});
    }
    stage.end_ns = begin_ns + seconds * 1'000 * kMs;
    return *this;
  }
  ARun& EndedWith(int exit_status) {
    recording_.stages.front().exit_status = exit_status;
    return *this;
  }
  ARun& FedBy(record::Loader loader) {
    rank().loaders.push_back(std::move(loader));
    return *this;
  }
  // Ranks that train at the same time.
  ARun& Beside(const ARun& other) {
    std::vector<record::RankInfo>& ranks = recording_.stages.front().ranks;
    ranks.push_back(other.recording_.stages.front().ranks.front());
    ranks.back().rank = static_cast<int>(ranks.size()) - 1;
    return *this;
  }
  ARun& OnCores(int cores) {
    recording_.machine["cores"] = recording_.machine["cores_logical"] = std::to_string(cores);
    return *this;
  }
  record::RankInfo& rank() { return recording_.stages.front().ranks.front(); }

 private:
  friend ARun ACommandWithoutTraining(int64_t seconds);

  template <typename Change>
  ARun& ForEachStep(Change change) {
    int64_t now_ns = 1'000 * kMs;
    for (record::Step& step : rank().steps) {
      change(step);
      step.end_ns = now_ns += step.wall_ns;
    }
    return *this;
  }
  static void Lengthen(record::Step& step, record::Share share, int64_t ms) {
    step.share_ns[Index(share)] += ms * kMs;
    step.wall_ns += ms * kMs;
    if (share == record::Share::kHostOther)
      step.host_other_ns[static_cast<size_t>(record::HostOther::kUnnamed)] += ms * kMs;
  }

  record::Recording recording_;
  int64_t seconds_ = 60;
};

// Steps of 100 ms, all of it forward, backward and optimizer, as the hook sees them on 8 cores.
inline ARun ATraining(int64_t steps = 100) {
  return ARun(MadeRun({MadeRank(0, steps, [](int64_t) { return MadeStep{}; })}));
}

// Steps of 100 ms in which a device computes, as a trace shows them.
inline ARun ATrace(int64_t steps = 100) {
  ARun run = ATraining(steps);
  run.rank().device_activity = true;
  run.rank().kernels = 100 * steps;
  run.rank().compute_ns = steps * 100 * kMs;
  for (record::Step& step : run.rank().steps) {
    step.share_ns = {};
    step.share_ns[Index(record::Share::kCompute)] = step.wall_ns;
  }
  return run;
}

inline ARun ACommandWithoutTraining(int64_t seconds) {
  ARun run(MadeRun({}));
  record::Recording recording = run;
  recording.stages.front().end_ns = seconds * 1'000 * kMs;
  run = ARun(std::move(recording));
  run.seconds_ = seconds;
  return run;
}

inline const Finding* FindingIn(const Diagnosis& diagnosis, const std::string& id) {
  for (const Finding& finding : diagnosis.findings) {
    if (finding.id == id) return &finding;
  }
  return nullptr;
}

inline std::string IdsIn(const Diagnosis& diagnosis) {
  std::string ids;
  for (const Finding& finding : diagnosis.findings)
    ids += (ids.empty() ? "" : ", ") + finding.id + (finding.cause.empty() ? "" : ":" + finding.cause);
  return ids;
}

MATCHER_P(Finds, id, "finds " + std::string(id)) {
  *result_listener << "which finds " << IdsIn(arg);
  return FindingIn(arg, id) != nullptr;
}

MATCHER_P2(FindsCause, id, cause, "finds " + std::string(id) + ":" + cause) {
  *result_listener << "which finds " << IdsIn(arg);
  const Finding* finding = FindingIn(arg, id);
  return finding && finding->cause == cause;
}

MATCHER_P(Advises, words, "advises '" + std::string(words) + "'") {
  for (const std::string& fix : arg.fix) {
    if (fix.find(words) != std::string::npos) return true;
  }
  return false;
}

MATCHER_P(LeavesOpen, id, "leaves '" + std::string(id) + "' open") {
  for (const NotJudged& open : arg.not_judged) {
    if (open.id.find(id) != std::string::npos) return true;
  }
  return false;
}

}  // namespace fullbore::diagnose::testing
