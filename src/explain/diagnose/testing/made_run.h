// Recordings made for tests: a run of equal steps, to which each test adds what it tests.
#pragma once

#include <functional>

#include "record/metrics.h"
#include "record/recording.h"

namespace fullbore::diagnose::testing {

inline constexpr int64_t kMs = 1'000'000;

struct MadeStep {
  int64_t data_ms = 0, forward_ms = 40, backward_ms = 55, optimizer_ms = 5, other_ms = 0, comm_ms = 0;
};

// `steps` steps of one rank with 32 samples each, back to back from t = 1 s. `shape(i)` gives step i.
inline record::RankInfo MadeRank(int rank, int64_t steps, const std::function<MadeStep(int64_t)>& shape) {
  using record::Share;
  record::RankInfo info;
  info.rank = rank;
  info.samples_known = true;
  int64_t now_ns = 1'000 * kMs;
  for (int64_t i = 0; i < steps; ++i) {
    const MadeStep made = shape(i);
    record::Step step;
    step.index = i;
    step.samples = 32;
    step.batches = 1;
    step.share_ns[Index(Share::kDataWait)] = made.data_ms * kMs;
    step.share_ns[Index(Share::kForward)] = made.forward_ms * kMs;
    step.share_ns[Index(Share::kBackward)] = made.backward_ms * kMs;
    step.share_ns[Index(Share::kOptimizer)] = made.optimizer_ms * kMs;
    step.share_ns[Index(Share::kHostOther)] = made.other_ms * kMs;
    step.share_ns[Index(Share::kCommExposed)] = made.comm_ms * kMs;
    step.host_other_ns[static_cast<size_t>(record::HostOther::kUnnamed)] = made.other_ms * kMs;
    for (const int64_t ns : step.share_ns) step.wall_ns += ns;
    step.end_ns = now_ns += step.wall_ns;
    info.steps.push_back(step);
  }
  return info;
}

// A training loader whose fetches all took the same time.
inline record::Loader MadeLoader(int64_t workers, int64_t batches, int64_t fetch_ms, int64_t cpu_ms) {
  record::Loader loader;
  loader.feeds_training = true;
  loader.num_workers = workers;
  loader.batch_size = 32;
  loader.where = "/home/u/train.py:57";
  loader.batches = batches;
  loader.samples = 32 * batches;
  loader.fetch_ns = batches * fetch_ms * kMs;
  loader.cpu_ns = batches * cpu_ms * kMs;
  loader.collate_ns = batches * kMs;
  for (int64_t i = 0; i < batches; ++i) {
    loader.batch_fetch_ns.Add(static_cast<double>(fetch_ms * kMs));
    loader.slowest_sample_ns.Add(static_cast<double>(fetch_ms * kMs) / 32);
  }
  return loader;
}

inline record::Recording MadeRun(std::vector<record::RankInfo> ranks, int cores = 8) {
  record::Recording recording;
  recording.id = "made";
  recording.source = "run";
  recording.machine["cores"] = std::to_string(cores);
  record::Stage& stage = recording.stages.emplace_back();
  stage.id = 1;
  stage.name = "train";
  stage.ranks = std::move(ranks);
  stage.end_ns = 3'600'000 * kMs;
  return recording;
}

// A series with the same value once a second for the first `seconds`.
inline void AddSeries(record::Recording& recording, record::Metric metric, double value,
                      const record::Labels& labels = {}, int64_t seconds = 60) {
  record::Series series{record::KeyOf(metric, labels), {}};
  for (int64_t t = 1; t <= seconds; ++t) series.readings.push_back({t * 1'000 * kMs, value});
  recording.stages.front().series.push_back(std::move(series));
}

}  // namespace fullbore::diagnose::testing
