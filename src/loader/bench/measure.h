// Measures the data alone: reading by itself, cold and warm, then the whole way to finished batches at each
// number of threads. No training runs meanwhile, so the result is a ceiling.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "fullbore/loader.h"
#include "loader/bench/flow.h"

namespace fullbore::loader::bench {

struct MeasureOptions {
  LoaderOptions loader;
  std::vector<int> threads;  // ascending
  double seconds = 3;        // per measurement
  bool cold = true;          // drop local files from memory first; read remote ones past the disk cache
};

// Receives what is being done, and the overall progress (0 to 1). Called a few times per second from the
// measuring thread.
using Progress = std::function<void(const std::string& doing, double share)>;

// `stop` may be set from a signal handler: the results so far are returned, marked as interrupted.
Result<Flow> Measure(const MeasureOptions& options, const Progress& progress, const std::atomic<bool>& stop);

// 1, 2, 4, ... and the number of cores.
std::vector<int> UsualThreads(int cores);

}  // namespace fullbore::loader::bench
