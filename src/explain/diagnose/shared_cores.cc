#include "explain/diagnose/shared_cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "explain/diagnose/recorded_pipeline.h"

namespace fullbore::diagnose {

namespace {

// So many numbers of workers are tried: each is a replay, and a loader with more of them gains nothing that fewer do not.
constexpr int64_t kMostWorkersTried = 256;
// One more worker must gain at least this much over fewer of them.
constexpr double kNearlyAsGood = 1.03;

}  // namespace

SharedCores ShareCores(const replay::Pipeline& pipeline, double step_ns) {
  SharedCores best;
  double best_ns = 0;
  const int64_t cores = std::llround(pipeline.cores);
  const int64_t most = std::min(cores, kMostWorkersTried);
  for (int64_t workers = 1; workers <= most && cores > 1; ++workers) {
    const double threads = std::max(1.0, static_cast<double>(cores - workers));
    if (threads >= pipeline.threads) continue;
    const replay::Pipeline shared = WithThreads(WithWorkers(pipeline, workers), threads);
    const double ns = Replay(shared).step_ns;
    if (best.gain && ns > best_ns / kNearlyAsGood) continue;
    best_ns = ns;
    best = {workers, static_cast<int64_t>(threads), PredictSpeedup(step_ns, shared)};
  }
  return best;
}

std::string ChangeOf(const SharedCores& shared) {
  return fmt::format("OMP_NUM_THREADS={} and DataLoader(num_workers={})", shared.threads, shared.workers);
}

}  // namespace fullbore::diagnose
