// What if: runs the recorded steps through the pipeline loader -> training again, with one thing changed.
//
// The loader is W workers that each fetch every W-th batch, deliver in order and run at most K batches ahead
// of the training, as torch.utils.data.DataLoader does. The training is ready for batch i once it has used
// batch i - 1:
//
//   begin(i) = max(done(i - W), taken(i - K))
//   done(i)  = begin(i) + fetch(i)
//   taken(i) = max(done(i), ready(i))
//
// With W = 0 the training fetches each batch itself, when it asks for it.
//
// Work that shares the CPU cannot overlap beyond the number of cores: a step takes at least the CPU time that
// training and loading need together, divided by the cores; ranks that train beside each other share them evenly,
// as each takes the same advice. A batch that a worker fetched is handed over to
// the training process, which costs time in both.
#pragma once

#include <cstdint>
#include <vector>

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

// The ratio of the cores that a step reaches when it keeps all of them busy.
inline constexpr double kCoresReached = 0.95;

struct Pipeline {
  std::vector<double> consume_ns;  // each step without its wait for data
  std::vector<double> fetch_ns;    // recorded fetch times by quantile, drawn in a fixed scattered order
  double batches_per_step = 1;
  int64_t workers = 0;
  int64_t prefetch = 2;   // batches ahead per worker
  double send_ns = 0;     // a worker's time to hand over a batch, beyond the fetch
  double receive_ns = 0;  // the training's time to take it, where consume_ns does not include it already
  double apart = 1;       // factor on consume_ns once fetching no longer shares the training's thread
  // Waiting for workers to start at the beginning of epochs, spread over all steps.
  double start_ns_per_step = 0;
  // The CPU; 0 cores if unknown.
  double cores = 0;         // this rank's part of those that were left to the command
  double cores_alone = 0;   // of those that it would have with no other program beside it
  double train_cpu_ns = 0;  // core time per step outside the loader
  double fetch_cpu_ns = 0;  // core time per batch
};

// The training's part of the pipeline as it was recorded, without a loader; nothing if there was no batch.
std::optional<Pipeline> TrainingPipeline(const View& view);

// The pipeline as it was recorded; nothing if the loader's fetches were not recorded.
std::optional<Pipeline> RecordedPipeline(const View& view);

// The same with another number of workers: fetching in the training thread leaves its caches cold, and fetching
// elsewhere leaves them to it.
Pipeline WithWorkers(Pipeline pipeline, int64_t workers);

struct Replayed {
  double step_ns = 0;      // mean
  double wait_ns = 0;      // the part of it spent waiting for data
  bool cpu_bound = false;  // the cores set the pace
};

Replayed Replay(const Pipeline& pipeline);

// How much faster `changed` is than the recorded mean step, with a range for the spread over steps and for
// what the replay leaves out. The slow end assumes that less of the cores can be used; the fast end, that all
// of them can, that other programs leave them alone, and that the training takes the time of its faster
// quartile.
Speedup PredictSpeedup(double recorded_step_ns, const Pipeline& changed);

// The fewest workers whose replayed step is within 3 % of the best that any number up to `most` reaches.
int64_t FewestWorkers(Pipeline pipeline, int64_t most);

}  // namespace fullbore::diagnose
