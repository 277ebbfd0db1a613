// The loader and the training of a recorded run, as a pipeline that can be run again.
#pragma once

#include <optional>

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/view.h"
#include "explain/replay/pipeline.h"

namespace fullbore::diagnose {

// The training's part of the pipeline as it was recorded, without a loader; nothing if there was no batch.
std::optional<replay::Pipeline> TrainingPipeline(const View& view);

// The pipeline as it was recorded; nothing if the loader's fetches were not recorded.
std::optional<replay::Pipeline> RecordedPipeline(const View& view);

// The pipeline of a training that is fed by code of the script's own: by its own thread, each batch taking it `fetch_ns`
// of the step, or by a producer beside it that is busy all the time; `fetch_cpu_ns` of that is spent on a core.
// `waited`: of the time of what works, how much it waits for a core that other programs have.
enum class Feeder { kTrainingThread, kProducer };
std::optional<replay::Pipeline> OwnPipeline(const View& view, Feeder feeder, double fetch_ns,
                                            double fetch_cpu_ns, double waited);

// The same with batches in memory of the training's own, kept from batch to batch, where worker processes hand over theirs
// now: nothing is taken, touched for the first time or unmapped.
replay::Pipeline WithOwnBatches(const View& view, replay::Pipeline pipeline);

// Of the batch's first tensor; 0 where unknown.
double BytesOfBatch(const View& view);

// Garbage is collected where objects are made: what of a step's collections falls into fetches of the training's own
// thread. The clock of a fetch counts it, the step's wait for data does not.
double CollectionsInFetchesNs(const View& view);

// How much faster the changed pipeline is than the recorded mean step.
Speedup PredictSpeedup(double recorded_step_ns, const replay::Pipeline& changed);

}  // namespace fullbore::diagnose
