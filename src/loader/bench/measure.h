// Measures the data alone: reading by itself, cold and warm, then the whole way to finished batches at each
// number of threads. Nobody trains meanwhile, so what comes out is a ceiling.
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
  double seconds = 3;        // a measurement
  bool cold = true;          // drop local files from memory first; read remote ones past the disk cache
};

// What is being done, and how much of everything is behind us (0 to 1). Called a few times a second from the
// measuring thread.
using Progress = std::function<void(const std::string& doing, double share)>;

// `stop` may be set from a signal handler: what was measured until then is returned, as interrupted.
Result<Flow> Measure(const MeasureOptions& options, const Progress& progress, const std::atomic<bool>& stop);

// 1, 2, 4, ... up to the cores, and these themselves.
std::vector<int> UsualThreads(int cores);

}  // namespace fullbore::loader::bench
