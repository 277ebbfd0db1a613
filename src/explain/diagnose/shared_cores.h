// Cores divided between the training's intra-op threads and workers that load beside it. A pool as large as the machine
// takes from workers what they bring; with fewer threads, both go on side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "explain/diagnose/diagnosis.h"
#include "explain/replay/pipeline.h"

namespace fullbore::diagnose {

struct SharedCores {
  int64_t workers = 0;
  int64_t threads = 0;          // of the training
  std::optional<Speedup> gain;  // nothing where the training computes with one thread already, or on one core
};

// The fewest workers, with as many threads as leave them their cores, that come near the best. `step_ns` is recorded.
SharedCores ShareCores(const replay::Pipeline& pipeline, double step_ns);

// "OMP_NUM_THREADS=1 and DataLoader(num_workers=1)"
std::string ChangeOf(const SharedCores& shared);

inline constexpr const char* kWhySharing =
    "the training's threads keep all cores busy, also where they only wait for each other; with fewer of "
    "them, workers load beside it";

}  // namespace fullbore::diagnose
