#include "tune/search/known.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/recorded_pipeline.h"
#include "explain/diagnose/view.h"
#include "explain/replay/pipeline.h"
#include "record/metrics.h"

namespace fullbore::tune {

namespace {

using record::Metric;

constexpr int64_t kTorchPrefetch = 2;  // DataLoader's default, where there are workers

// Of the device, or else what the command may use of the host.
std::optional<int64_t> MemoryLimit(const record::Recording& recording, const diagnose::View& view,
                                   bool device) {
  if (device) {
    if (const auto total = view.Max(Metric::kGpuMemoryTotal)) return static_cast<int64_t>(*total);
    return std::nullopt;
  }
  std::optional<int64_t> limit;
  for (const char* fact : {"memory_bytes", "cgroup_memory_limit"}) {
    const auto at = recording.machine.find(fact);
    const auto bytes = at == recording.machine.end() ? std::nullopt : ParseInt(at->second);
    if (bytes && *bytes > 0) limit = std::min(limit.value_or(*bytes), *bytes);
  }
  return limit;
}

}  // namespace

std::optional<int64_t> Known::Own(const std::string& knob) const {
  const auto at = own.find(knob);
  if (at == own.end() || !at->second.is_number_integer()) return std::nullopt;
  return at->second.get<int64_t>();
}

Known KnownFrom(const record::Recording& recording) {
  Known known;
  const record::Stage* stage = diagnose::JudgedStage(recording);
  if (stage == nullptr) return known;
  const diagnose::View view(recording, *stage);
  known.ranks = std::max<int64_t>(1, static_cast<int64_t>(view.RanksBesideEachOther()));
  known.cores = std::max<int64_t>(1, std::llround(view.cores()) / known.ranks);
  if (!view.HasSteps()) return known;
  const diagnose::RankView& rank = view.lead();
  known.wait = rank.Ratio(record::Share::kDataWait);
  known.optimizer = rank.Ratio(record::Share::kOptimizer);
  known.device = !rank.info->device.empty() && rank.info->device != "cpu";
  known.threads = known.device ? 0 : ParseInt(view.Fact("torch_threads").value_or("")).value_or(0);
  if (known.threads > 0) known.own["intraop_threads"] = known.threads;
  const std::string shape = view.Fact("batch_shape").value_or("");
  known.images = std::count(shape.begin(), shape.end(), ',') == 3;
  known.memory_limit = MemoryLimit(recording, view, known.device);
  const record::Loader* loader = rank.TrainingLoader();
  if (loader == nullptr) return known;
  known.loader_where = loader->where;
  known.epoch_samples = loader->dataset_samples;
  if (!loader->library.empty()) return known;  // not torch's: it has no workers of that kind
  known.own["num_workers"] = loader->num_workers;
  known.importing = loader->WorkersImportScript();
  if (loader->batch_size) known.own["batch_size"] = *loader->batch_size;
  known.own["pin_memory"] = loader->pin_memory;
  known.own["prefetch_factor"] = loader->prefetch_factor.value_or(kTorchPrefetch);
  known.own["persistent_workers"] = loader->persistent_workers;
  known.epochs = loader->restarts > 0;
  known.fast_data = loader->fast_sample_ns.has_value();
  if (loader->samples > 0) {
    const double samples = static_cast<double>(loader->samples) * 1e9;
    known.fetch_s = static_cast<double>(loader->fetch_ns) / samples;
    known.fetch_cpu_s = static_cast<double>(loader->cpu_ns) / samples;
  }
  if (const auto pipeline = diagnose::RecordedPipeline(view)) {
    const double step_ns = rank.MeanStepNs();
    known.replay = [pipeline = *pipeline, step_ns, own = known.threads](
                       int64_t workers, int64_t threads) -> std::optional<double> {
      // Of a training with one thread, or a pool that was not seen to compute, it does not know what more would do.
      if (threads != own && pipeline.threads <= 1) return std::nullopt;
      replay::Pipeline changed = replay::WithWorkers(pipeline, workers);
      if (threads > 0 && threads != own) changed = replay::WithThreads(changed, static_cast<double>(threads));
      return diagnose::PredictSpeedup(step_ns, changed).expected;
    };
  }
  return known;
}

}  // namespace fullbore::tune
