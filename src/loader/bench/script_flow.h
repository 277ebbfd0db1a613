// What `--script` measured: the training DataLoader of a script, iterated alone in its own process
// (python/fullbore/hook/torch/drain.py writes one JSON object per rank).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/result.h"
#include "loader/bench/plot.h"

namespace fullbore::loader::bench {

struct ScriptFlow {
  std::string script;
  int ranks = 0;
  int cores = 1;
  double samples_per_s = 0, batches_per_s = 0;  // of all ranks
  double worker_cores = 0, main_cores = 0;      // used by loader workers, by the training processes
  double worker_waits = 0;                      // workers that were ready to run and had no core, on average
  // The loader's own options, from the first rank:
  int num_workers = 0;  // per rank
  std::optional<int64_t> batch_size, dataset_samples;
  std::string dataset, where;
  // The equivalent loader of fullbore.data, or why there is none.
  std::optional<double> fast_samples_per_s;
  std::string fast_reason;
};

// Sums the objects of the ranks. kUnavailable, with the hook's reason, if one holds an error; kNotFound if
// there are none.
Result<ScriptFlow> SumRanks(const std::vector<nlohmann::json>& ranks);

struct ScriptVerdict {
  std::string binds;  // "training process", "cores", "workers", "storage"
  std::string text, next_step;
};
ScriptVerdict Judge(const ScriptFlow& flow);

std::string ToTerminal(const ScriptFlow& flow, double wanted_samples_per_s, const PlotStyle& style);
nlohmann::ordered_json ToJson(const ScriptFlow& flow, double wanted_samples_per_s);

}  // namespace fullbore::loader::bench
