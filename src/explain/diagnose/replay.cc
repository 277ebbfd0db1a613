#include "explain/diagnose/replay.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "explain/diagnose/statistics.h"

namespace fullbore::diagnose {

using record::Metric;
using record::Share;

namespace {

constexpr size_t kQuantiles = 256;
constexpr size_t kReplayedSteps = 2000;
// Limits for files that claim absurd figures: of steps with very many batches fewer are replayed, and only so
// many numbers of workers are tried.
constexpr double kReplayedBatches = 20'000;
constexpr int64_t kMaxWorkersTried = 256;
constexpr double kNearBest = 1.03;
// The figures below were measured with the planted causes; docs/measurements.md says how and when.
//
// Around kCoresReached: three processes on two cores do not always find one, and the rest of the machine needs
// some.
constexpr double kCoresReachedAtMost = 1.0, kCoresReachedAtLeast = 0.90;
// Handing over a batch: pickled, copied into shared memory, mapped by the training; half on each side.
constexpr double kHandOverNs = 1.0e6, kHandOverNsPerByte = 1.0;
// Of two programs that want the same core on equal terms, each waits half of the time.
constexpr double kWaitAmongEquals = 0.5;
constexpr double kBytesPerElement = 4;  // assumed for the batch's first tensor, whose type is not recorded
// The rest (cache misses, frequency changes, other programs) widens the range by this much on either side.
constexpr double kModelError = 0.08;
// A training thread that also decodes finds its caches cold: without decoding it took this fraction of the
// time.
constexpr double kTrainingApart = 0.93;

double Mean(const std::vector<double>& values) {
  return values.empty()
             ? 0
             : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The i-th point of van der Corput's sequence in base 2: any stretch of it covers [0, 1) evenly, so the
// replay draws slow and fast batches in the right proportion without a random generator.
double Scattered(size_t i) {
  double x = 0, half = 0.5;
  for (size_t n = i + 1; n; n >>= 1, half /= 2) x += (n & 1) ? half : 0;
  return x;
}

double FetchOf(const Pipeline& pipeline, size_t batch) {
  const auto n = static_cast<double>(pipeline.fetch_ns.size());
  return pipeline.fetch_ns[std::min(pipeline.fetch_ns.size() - 1, static_cast<size_t>(Scattered(batch) * n))];
}

// The least time of a step: the core time that it needs, spread over all cores.
double CpuFloorNs(const Pipeline& pipeline, double reached) {
  if (pipeline.cores <= 0) return 0;
  const double hand_over_ns = pipeline.workers > 0 ? pipeline.send_ns + pipeline.receive_ns : 0;
  const double batch_ns = pipeline.fetch_cpu_ns + hand_over_ns;
  const double train_ns = pipeline.train_cpu_ns * (pipeline.workers > 0 ? pipeline.apart : 1);
  return (train_ns + pipeline.batches_per_step * batch_ns) / (pipeline.cores * reached);
}

// The elements of the batch's first tensor, from the fact "[8,3,64,64]"; 0 where unknown.
double ElementsOfBatch(const View& view) {
  const std::string shape = view.Fact("batch_shape").value_or("");
  if (shape.size() < 3 || shape.front() != '[' || shape.back() != ']') return 0;
  double elements = 1;
  for (const std::string_view size : Split(std::string_view(shape).substr(1, shape.size() - 2), ','))
    elements *= ParseDouble(Trim(size)).value_or(0);
  return elements;
}

}  // namespace

std::optional<Pipeline> TrainingPipeline(const View& view) {
  if (!view.HasSteps()) return std::nullopt;
  Pipeline pipeline;
  int64_t batches = 0;
  for (const record::Step* step : view.lead().steady) {
    pipeline.consume_ns.push_back(
        static_cast<double>(step->wall_ns - step->share_ns[Index(Share::kDataWait)]));
    batches += step->batches;
  }
  if (pipeline.consume_ns.empty() || batches == 0) return std::nullopt;
  pipeline.batches_per_step = static_cast<double>(batches) / static_cast<double>(pipeline.consume_ns.size());
  pipeline.cores = pipeline.cores_alone = view.cores() / static_cast<double>(view.RanksBesideEachOther());
  return pipeline;
}

std::optional<Pipeline> RecordedPipeline(const View& view) {
  auto training = TrainingPipeline(view);
  if (!training) return std::nullopt;
  const RankView& rank = view.lead();
  const record::Loader* loader = rank.TrainingLoader();
  if (!loader || loader->batches == 0 || loader->fetch_ns == 0) return std::nullopt;
  Pipeline& pipeline = *training;
  for (size_t i = 0; i < kQuantiles; ++i) {
    pipeline.fetch_ns.push_back(loader->batch_fetch_ns.Quantile((static_cast<double>(i) + 0.5) / kQuantiles));
  }
  // The sketch knows its mean exactly and its quantiles to a percent.
  const double correction = loader->batch_fetch_ns.mean() / std::max(1.0, Mean(pipeline.fetch_ns));
  for (double& ns : pipeline.fetch_ns) ns *= correction;
  pipeline.workers = loader->num_workers;
  pipeline.prefetch = loader->prefetch_factor.value_or(2);
  // Cores that other programs keep busy are not there for more workers, unless those programs give way.
  // Fetches that waited for a core show that they do not. What the command had, it can have again.
  if (const auto others = view.CoresOfOthers(); others && pipeline.cores > 0) {
    const double waited = static_cast<double>(loader->run_delay_ns) / static_cast<double>(loader->fetch_ns);
    const double kept = *others * std::min(1.0, waited / kWaitAmongEquals);
    const double left = std::max(view.cores() - kept, std::min(view.cores(), *view.CoresOfCommand()));
    pipeline.cores = left / static_cast<double>(view.RanksBesideEachOther());
  }
  pipeline.fetch_cpu_ns = static_cast<double>(loader->cpu_ns) / static_cast<double>(loader->batches);
  pipeline.send_ns = (kHandOverNs + kHandOverNsPerByte * kBytesPerElement * ElementsOfBatch(view)) / 2;
  if (loader->num_workers == 0) {
    pipeline.receive_ns = pipeline.send_ns;
    pipeline.apart = kTrainingApart;
  }
  if (const auto cpu = view.Mean(Metric::kProcessCpu, {{"role", "trainer"}})) {
    const double inline_fetch =
        loader->num_workers == 0 ? pipeline.batches_per_step * pipeline.fetch_cpu_ns : 0;
    const double trainer_ns = *cpu * rank.MeanStepNs() - inline_fetch;
    pipeline.train_cpu_ns = std::max(0.0, trainer_ns / static_cast<double>(view.RanksBesideEachOther()));
  }
  return training;
}

Pipeline WithWorkers(Pipeline pipeline, int64_t workers) {
  if (pipeline.workers > 0 && workers == 0) {
    for (double& ns : pipeline.consume_ns) ns /= kTrainingApart;
    pipeline.train_cpu_ns /= kTrainingApart;
    pipeline.start_ns_per_step = 0;
  }
  pipeline.workers = workers;
  return pipeline;
}

namespace {

Replayed ReplayReaching(const Pipeline& pipeline, double cores_reached) {
  const auto affordable = static_cast<size_t>(kReplayedBatches / std::max(1.0, pipeline.batches_per_step));
  const size_t wanted = std::min(kReplayedSteps, std::max<size_t>(pipeline.consume_ns.size(), 200));
  const size_t steps = std::max<size_t>(1, std::min(wanted, affordable));
  const auto workers = static_cast<size_t>(std::max<int64_t>(0, pipeline.workers));
  const size_t ahead =
      std::max<size_t>(1, workers * static_cast<size_t>(std::max<int64_t>(1, pipeline.prefetch)));
  std::vector<double> done, taken;
  double now = 0, waited = 0;
  size_t batch = 0;
  for (size_t step = 0; step < steps; ++step) {
    const auto until =
        static_cast<size_t>(std::llround(static_cast<double>(step + 1) * pipeline.batches_per_step));
    for (; batch < until; ++batch) {
      const double fetch = FetchOf(pipeline, batch);
      double ready = now + fetch;
      if (workers > 0) {
        const double worker_free = batch >= workers ? done[batch - workers] : 0;
        const double room = batch >= ahead ? taken[batch - ahead] : 0;
        ready = std::max(worker_free, room) + fetch + pipeline.send_ns;
        done.push_back(ready);
        taken.push_back(std::max(ready, now));
      }
      waited += std::max(0.0, ready - now);
      now = std::max(now, ready) + (workers > 0 ? pipeline.receive_ns : 0);
    }
    now += pipeline.consume_ns[step % pipeline.consume_ns.size()] * (workers > 0 ? pipeline.apart : 1);
  }
  Replayed replayed;
  replayed.step_ns = now / static_cast<double>(steps) + pipeline.start_ns_per_step;
  replayed.wait_ns = waited / static_cast<double>(steps) + pipeline.start_ns_per_step;
  const double floor_ns = CpuFloorNs(pipeline, cores_reached);
  if (floor_ns > replayed.step_ns) {
    replayed.cpu_bound = true;
    replayed.wait_ns += floor_ns - replayed.step_ns;
    replayed.step_ns = floor_ns;
  }
  return replayed;
}

}  // namespace

Replayed Replay(const Pipeline& pipeline) { return ReplayReaching(pipeline, kCoresReached); }

Speedup PredictSpeedup(double recorded_step_ns, const Pipeline& changed) {
  const double expected_ns = Replay(changed).step_ns;

  Pipeline fast = changed;
  const double fast_scale =
      std::min(1.0, Quantile(changed.consume_ns, 0.25) / std::max(1.0, Mean(changed.consume_ns)));
  for (double& ns : fast.consume_ns) ns *= fast_scale;
  fast.train_cpu_ns *= fast_scale;
  fast.cores = changed.cores_alone;
  fast.apart *= changed.apart;

  // The closer the demand comes to all cores, the more the training thread is slowed by what runs beside it.
  Pipeline slow = changed;
  if (expected_ns > 0) {
    const double wanted = std::min(1.0, CpuFloorNs(changed, 1) / expected_ns);
    const double slowed = 1 + wanted * (1 / kCoresReachedAtLeast - 1);
    for (double& ns : slow.consume_ns) ns *= slowed;
    for (double& ns : slow.fetch_ns) ns *= slowed;
  }
  const double slow_ns = ReplayReaching(slow, kCoresReachedAtLeast).step_ns * (1 + kModelError);
  const double fast_ns = ReplayReaching(fast, kCoresReachedAtMost).step_ns * (1 - kModelError);
  return {recorded_step_ns / expected_ns, recorded_step_ns / slow_ns, recorded_step_ns / fast_ns};
}

int64_t FewestWorkers(Pipeline pipeline, int64_t most) {
  most = std::min(most, kMaxWorkersTried);
  std::vector<double> step_ns;
  for (int64_t workers = 1; workers <= std::max<int64_t>(1, most); ++workers) {
    pipeline.workers = workers;
    step_ns.push_back(Replay(pipeline).step_ns);
  }
  const double best = *std::min_element(step_ns.begin(), step_ns.end());
  for (size_t i = 0; i < step_ns.size(); ++i) {
    if (step_ns[i] <= best * kNearBest) return static_cast<int64_t>(i) + 1;
  }
  return most;
}

}  // namespace fullbore::diagnose
