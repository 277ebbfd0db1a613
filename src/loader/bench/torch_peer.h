// PyTorch's DataLoader on the same data, in the user's own Python: a small script (like_torch.py, embedded in
// the binary) does what everybody's training script does.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/result.h"
#include "loader/bench/flow.h"
#include "loader/bench/measure.h"

namespace fullbore::loader::bench {

extern const std::string_view kTorchScript;

struct TorchOptions {
  std::string python = "python3";
  std::vector<std::string> paths;
  int image_size = 224;
  int64_t batch_size = 64;
  double seconds = 3;
  std::vector<int> workers;
  uint64_t limit = 0;  // samples gone through, as the loader's own measurement did
};

// Adds its rates and versions to `flow`. kUnavailable where that Python has no torch or Pillow.
Result<void> MeasureTorch(const TorchOptions& options, Flow& flow, const Progress& progress,
                          const std::atomic<bool>& stop);

}  // namespace fullbore::loader::bench
