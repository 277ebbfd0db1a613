// A loader and the training that it feeds, where only their times are known and not what each thread did: a
// run without a recording of the device. It is run as a graph like any other:
//
//   worker      fetch -> hand over ------.      W workers, each fetches every W-th batch,
//   worker           fetch -> hand over --+-.   delivers in order and runs at most K batches ahead
//   training           wait, take -> step -> wait, take -> step
//
// With W = 0 the training fetches each batch itself, when it asks for it.
//
// Work that shares the CPU cannot overlap beyond the number of cores: a step takes at least the CPU time that
// training and loading need together, divided by the cores. Ranks that train beside each other share them
// evenly, as each takes the same advice.
//
// A training that computes with several threads waits at the end of each operation for the last of them. Where all
// cores are theirs, a worker on one of them holds them all up: the pool then loses more than what the workers take.
#pragma once

#include <cstdint>
#include <vector>

#include "explain/replay/predict.h"
#include "record/step_graph.h"

namespace fullbore::replay {

// The ratio of the cores that a step reaches when it keeps all of them busy.
inline constexpr double kCoresReached = 0.95;
// Where workers and training are more than there are cores, they take turns on them, and handing a batch over waits for
// one: about a time slice. From the even seeds 0, 2, 26, 78, 80, 104, 148 and 234 of the exam (docs/accuracy.md), whose
// steps took 1.9 to 4.1 ms more than their CPU time says (two of them 8 and 10), and `too_few_workers` (0.4 ms).
inline constexpr double kTurnNs = 2.5e6;
// What the training waits for each worker that it starts, and for its end: bench/explain/worker_start.py.
inline constexpr double kWorkerStartNs = 25e6;

struct Pipeline {
  std::vector<double> consume_ns;  // each step without its wait for data
  std::vector<double> fetch_ns;    // recorded fetch times by quantile, drawn in a fixed scattered order
  double batches_per_step = 1;
  int64_t workers = 0;
  int64_t prefetch = 2;   // batches ahead per worker
  double send_ns = 0;     // a worker's time to hand over a batch, beyond the fetch
  double receive_ns = 0;  // the training's time to take it, where consume_ns does not include it already
  // The training, once it no longer stops to fetch or to wait, takes this part of consume_ns.
  double apart = 1;
  bool unbroken = false;  // it does not stop any more: `apart` applies
  // What it waits for data in a step: where it computes on the host, what comes next takes longer for that.
  double pause_ns = 0;
  bool on_host = false;
  bool has_pool = false;  // of several threads
  bool awake = false;     // it need not wait asleep any more
  // Epochs begin with workers that start, and with an empty queue.
  double starts_per_step = 0;
  double start_ns = kWorkerStartNs;  // for each worker; 0 where they are kept
  // The CPU; 0 cores if unknown.
  double cores = 0;          // this rank's part of those that were left to the command
  double cores_alone = 0;    // of those that it would have with no other program beside it
  double turn_ns = kTurnNs;  // per batch, where processes outnumber the cores
  double train_cpu_ns = 0;   // core time per step outside the loader
  double fetch_cpu_ns = 0;   // core time per batch
  // The training's pool of intra-op threads, and the core time of a step, outside the loader, that they share.
  double threads = 1;
  double parallel_ns = 0;
};

// A training thread that also decodes finds its caches cold: without decoding it takes this fraction of the
// time.
inline constexpr double kTrainingApart = 0.93;
// A pool of threads falls asleep in such pauses, and is woken again by each of the next operations: without them its
// work took 0.68, 0.56 and 0.47 of the time in the even seeds 172, 96 and 18 of the exam (docs/accuracy.md), which is as far as
// the range reaches.
inline constexpr double kPoolApart = 0.62;
// What computes on the host after a pause takes longer by a part of the pause: caches have gone cold, and threads of
// a pool come back when the scheduler has found them a core, for which the others spin meanwhile. With one thread,
// 0.01 to 0.05 of it (bench/explain/after_a_pause.py); with two, 0.02 to 0.19, and 0.10 in the median, in the even
// seeds 10, 12, 14, 18, 88, 92, 96, 166, 170, 174, 244 and 252 (docs/measurements.md).
struct CostOfPause {
  double expected, most;  // of the pause
};
inline constexpr CostOfPause kPauseOfOne = {0.03, 0.05}, kPauseOfPool = {0.10, 0.20};
// At most, for each batch: the most that was seen is 15 ms (seed 244).
inline constexpr double kLongestWakingNs = 20e6;
// The pauses never cost more than this part of what follows them. A choice.
inline constexpr double kMostOfPauses = 0.9;

// The same with another number of workers: fetching in the training thread leaves its caches cold, and
// fetching elsewhere leaves them to it.
Pipeline WithWorkers(Pipeline pipeline, int64_t workers);

// The same where fetches do not wait any more for anything but cores, so that the training need not stop, or sleep, for
// them.
Pipeline WithoutSleep(Pipeline pipeline);

// The same with another number of intra-op threads: what they share is spread over them (Amdahl's law). One thread
// does not spin while it waits for others; several keep the cores busy that they have.
Pipeline WithThreads(Pipeline pipeline, double threads);

struct Replayed {
  double step_ns = 0;      // mean
  double wait_ns = 0;      // the part of it spent waiting for data
  bool cpu_bound = false;  // the cores set the pace
};

Replayed Replay(const Pipeline& pipeline);

// The step of this pipeline, with a range for the spread over steps and for what the replay leaves out. The
// cautious end assumes that less of the cores can be used; the hopeful one, that all of them can, that other
// programs leave them alone, and that the training takes the time of its faster quartile.
Prediction PredictStep(const Pipeline& pipeline);

// The fewest workers whose replayed step is within 3 % of the best that any number up to `most` reaches.
int64_t FewestWorkers(Pipeline pipeline, int64_t most);

}  // namespace fullbore::replay
