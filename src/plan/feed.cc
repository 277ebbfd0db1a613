#include "plan/feed.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace fullbore::plan {

using replay::Outlook;
using replay::Pipeline;
using replay::Prediction;

namespace {

constexpr int64_t kMostWorkers = 64;
// With as many workers as the fewest that come so near to the best.
constexpr double kNearBest = 1.03;
// How far the replay of the recorded pipeline may be from the recorded step before it is not believed any more.
constexpr double kFarthest = 1.5;
// Of what a loader delivers by itself: caches, clocks. As the replay of pipelines has it.
constexpr double kSpread = 1.08;

double Mean(const std::vector<double>& values) {
  return values.empty()
             ? 0
             : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Pipeline With(const Recorded& recorded, double consume_ns, double gpus, const Cores& cores, Outlook outlook) {
  Pipeline pipeline = *recorded.loader;
  const double ratio = consume_ns / std::max(1.0, Mean(pipeline.consume_ns));
  for (double& ns : pipeline.consume_ns) ns *= ratio;
  pipeline.train_cpu_ns *= ratio;  // of a host that waits for its device, as much again
  pipeline.cores = pipeline.cores_alone = Capacity(cores, outlook) / gpus;
  return pipeline;
}

std::set<int64_t> WorkersToTry(const Recorded& recorded, double gpus, const Cores& cores) {
  std::set<int64_t> numbers = {recorded.loaded_by};
  const auto most = static_cast<int64_t>(std::max(1.0, std::floor(cores.logical / gpus)));
  for (int64_t workers = 1; workers <= std::min(most, kMostWorkers); ++workers) numbers.insert(workers);
  return numbers;
}

// As the recorded steps were to their own replay, so all others are to theirs.
double Correction(const Recorded& recorded) {
  const double consume_ns = Mean(recorded.loader->consume_ns);
  const Pipeline as_was = With(recorded, consume_ns, static_cast<double>(recorded.gpus),
                               recorded.CoresWith(recorded.gpus), Outlook::kExpected);
  const double replayed_ns = replay::Replay(as_was).step_ns;
  return replayed_ns > 0 ? std::clamp(recorded.step_ns / replayed_ns, 1 / kFarthest, kFarthest) : 1;
}

}  // namespace

Fed Feed(const Recorded& recorded, const Prediction& consume, int64_t gpus, const Cores& cores) {
  const auto n = static_cast<double>(gpus);
  const Pipeline expected = With(recorded, consume.expected_ns, n, cores, Outlook::kExpected);
  Fed fed;
  replay::Replayed best;
  std::vector<std::pair<int64_t, double>> tried;
  for (const int64_t workers : WorkersToTry(recorded, n, cores)) {
    const replay::Replayed replayed = replay::Replay(replay::WithWorkers(expected, workers));
    tried.emplace_back(workers, replayed.step_ns);
    if (best.step_ns == 0 || replayed.step_ns < best.step_ns) best = replayed, fed.workers = workers;
  }
  const int64_t serving_best = fed.workers;
  fed.workers = std::ranges::find_if(tried, [&](const auto& one) {
                  return one.second <= best.step_ns * kNearBest;
                })->first;
  const auto at = [&](double consume_ns, Outlook outlook) {
    return replay::PredictStep(
        replay::WithWorkers(With(recorded, consume_ns, n, cores, outlook), serving_best));
  };
  const double correction = Correction(recorded);
  const double doubt = std::abs(std::log(correction));
  fed.step = {best.step_ns * correction,
              at(consume.cautious_ns, Outlook::kCautious).cautious_ns * std::max(1.0, correction) *
                  std::exp(doubt / 2),
              at(consume.hopeful_ns, Outlook::kHopeful).hopeful_ns * std::min(1.0, correction)};
  fed.step.cautious_ns = std::max(fed.step.cautious_ns, fed.step.expected_ns);
  fed.step.hopeful_ns = std::min(fed.step.hopeful_ns, fed.step.expected_ns);
  fed.waits = best.step_ns > 0 ? best.wait_ns / best.step_ns : 0;
  fed.cores_bind = best.cpu_bound;
  return fed;
}

double CoresToFeed(const Recorded& recorded, double consume_ns, int64_t gpus, const Cores& kind) {
  const Pipeline& loader = *recorded.loader;
  const double cpu_ns = With(recorded, consume_ns, 1, {}, Outlook::kExpected).train_cpu_ns +
                        loader.batches_per_step * (loader.fetch_cpu_ns + loader.send_ns + loader.receive_ns);
  const double capacity =
      static_cast<double>(gpus) * cpu_ns / std::max(1.0, consume_ns) / replay::kCoresReached;
  return CoresFor(capacity, kind, Outlook::kExpected);
}

Range LoaderAlone(const Recorded& recorded, const Cores& cores) {
  const Pipeline& loader = *recorded.loader;
  const double batch_cpu_ns = loader.fetch_cpu_ns + loader.send_ns;
  const double samples = recorded.PerStep() / std::max(1e-9, loader.batches_per_step);
  const double fetch_ns = Mean(loader.fetch_ns) + loader.send_ns;
  const auto rate = [&](Outlook outlook, double reached) {
    // As many workers as cores, each no faster than one by itself.
    const double by_cores = batch_cpu_ns > 0 ? Capacity(cores, outlook) * reached / batch_cpu_ns : HUGE_VAL;
    const double by_workers = fetch_ns > 0 ? std::max(1.0, std::floor(cores.logical)) / fetch_ns : HUGE_VAL;
    return samples * std::min(by_cores, by_workers) * 1e9;
  };
  return {rate(Outlook::kCautious, 0.9) / kSpread, rate(Outlook::kExpected, replay::kCoresReached),
          rate(Outlook::kHopeful, 1) * kSpread};
}

}  // namespace fullbore::plan
