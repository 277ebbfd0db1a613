#include "explain/diagnose/recorded_pipeline.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "explain/replay/hand_over.h"

namespace fullbore::diagnose {

using record::Metric;
using record::Share;
using replay::Pipeline;

namespace {

constexpr size_t kQuantiles = 256;
// Of two programs that want the same core on equal terms, each waits half of the time.
constexpr double kWaitAmongEquals = 0.5;
constexpr double kCoresOfAPool = 1.2;   // one thread that computes, and another that helps now and then
constexpr double kBytesPerElement = 4;  // assumed for the batch's first tensor, whose type is not recorded

// Of the training's time and of its core time, the most that taking a batch is believed to cost: its bytes are assumed.
// A choice.
constexpr double kMostForTaking = 0.5;

double MeanConsumeNs(const Pipeline& pipeline) {
  return std::accumulate(pipeline.consume_ns.begin(), pipeline.consume_ns.end(), 0.0) /
         static_cast<double>(pipeline.consume_ns.size());
}

// The core time of a step outside the loader, and what of it the training's pool of threads shares: with one thread,
// the step would take what is left without the spinning. Where the spinning is not known, all of it counts as work, so
// that fewer threads promise less.
void AddTrainingCpu(const View& view, double cores_used, double fetch_cpu_ns, Pipeline& pipeline) {
  const double ranks = static_cast<double>(view.RanksBesideEachOther());
  const double cpu_ns = cores_used * view.lead().MeanStepNs();
  pipeline.train_cpu_ns = std::max(0.0, (cpu_ns - fetch_cpu_ns) / ranks);
  const auto threads = ParseInt(view.Fact("torch_threads").value_or(""));
  const double consume_ns = MeanConsumeNs(pipeline);
  const bool works = pipeline.train_cpu_ns >= kCoresOfAPool * consume_ns;
  if (!threads || *threads < 2 || !view.ComputesOnCpu() || !works) return;
  pipeline.threads = static_cast<double>(*threads);
  pipeline.apart = replay::kPoolApart;
  const double spin = view.Mean(Metric::kProcessSpin, {{"role", "trainer"}}).value_or(0);
  const double work_ns = std::max(0.0, (cpu_ns * (1 - spin) - fetch_cpu_ns) / ranks);
  // What the pool spins while a batch is fetched is no work: beside the fetch, it has no more than its threads.
  pipeline.train_cpu_ns = std::min(pipeline.train_cpu_ns, consume_ns * pipeline.threads);
  pipeline.parallel_ns = std::clamp((work_ns - consume_ns) * pipeline.threads / (pipeline.threads - 1), 0.0,
                                    consume_ns * pipeline.threads);
}

// What epochs cost that begin anew, as they did.
void AddStarts(const RankView& rank, const record::Loader& loader, Pipeline& pipeline) {
  const auto restarts = static_cast<double>(loader.restarts);
  pipeline.starts_per_step =
      restarts / static_cast<double>(std::max<int64_t>(1, rank.warmup_steps + rank.steps));
  if (loader.persistent_workers) pipeline.start_ns = 0;
  if (loader.num_workers == 0 || loader.persistent_workers || loader.restarts == 0) return;
  const double waited_ns =
      static_cast<double>(loader.restart_wait_ns - std::min(loader.draw_ns, loader.restart_wait_ns)) /
          restarts -
      loader.batch_fetch_ns.mean();
  pipeline.start_ns = std::max(0.0, waited_ns) / static_cast<double>(loader.num_workers);
}

// Nothing without steps.
std::optional<Pipeline> Consumer(const View& view) {
  if (!view.HasSteps()) return std::nullopt;
  Pipeline pipeline;
  for (const record::Step* step : view.lead().steady) {
    pipeline.consume_ns.push_back(
        static_cast<double>(step->wall_ns - step->share_ns[Index(Share::kDataWait)]));
  }
  if (pipeline.consume_ns.empty()) return std::nullopt;
  pipeline.pause_ns = view.lead().Ratio(Share::kDataWait) * view.lead().MeanStepNs();
  pipeline.on_host = view.ComputesOnCpu();
  pipeline.has_pool = ParseInt(view.Fact("torch_threads").value_or("")).value_or(1) > 1;
  pipeline.cores = pipeline.cores_alone = view.cores() / static_cast<double>(view.RanksBesideEachOther());
  return pipeline;
}

// What other programs leave, of the machine's cores or of those that are the command's: what they keep busy is not
// there for more workers, however little it is. But they give way: a fair scheduler leaves half to one who asks for it.
// That they do not, or on a part of the machine that they are on its cores at all, is shown by work that waits for a core
// (`waited`, of its time). What the command had, it can have again.
double CoresLeft(const View& view, double waited) {
  const auto others = view.CoresOfOthers();
  if (!others || view.cores() <= 0) return view.cores();
  const auto logical = view.recording().machine.find("cores_logical");
  const bool whole = view.cores() >= ParseDouble(logical->second).value_or(0);
  const double in_the_way = *others * std::min(1.0, waited / kWaitAmongEquals);
  const double kept = whole ? std::max(in_the_way, std::min(*others, view.cores() / 2)) : in_the_way;
  return std::max(view.cores() - kept, std::min(view.cores(), *view.CoresOfCommand()));
}

void AddHandOver(const View& view, Pipeline& pipeline) {
  pipeline.send_ns = (replay::kHandOverNs + replay::kHandOverNsPerByte * BytesOfBatch(view)) / 2;
  if (pipeline.workers > 0) return;
  pipeline.receive_ns = pipeline.send_ns;
  pipeline.apart = replay::kTrainingApart;
}

}  // namespace

// From the fact "[8,3,64,64]".
double BytesOfBatch(const View& view) {
  const std::string shape = view.Fact("batch_shape").value_or("");
  if (shape.size() < 3 || shape.front() != '[' || shape.back() != ']') return 0;
  double elements = 1;
  for (const std::string_view size : Split(std::string_view(shape).substr(1, shape.size() - 2), ','))
    elements *= ParseDouble(Trim(size)).value_or(0);
  return elements * kBytesPerElement;
}

double CollectionsInFetchesNs(const View& view) {
  const RankView& rank = view.lead();
  const record::Loader* loader = rank.TrainingLoader();
  if (!loader || loader->num_workers > 0 || loader->batches == 0 || rank.steady.empty()) return 0;
  int64_t batches = 0;
  for (const record::Step* step : rank.steady) batches += step->batches;
  const double fetch_ns = static_cast<double>(loader->fetch_ns) / static_cast<double>(loader->batches) *
                          static_cast<double>(batches) / static_cast<double>(rank.steady.size());
  const double waited_ns = rank.Ratio(Share::kDataWait) * rank.MeanStepNs();
  return std::clamp(fetch_ns - waited_ns, 0.0,
                    rank.Ratio(record::HostOther::kGarbageCollection) * rank.MeanStepNs());
}

std::optional<Pipeline> TrainingPipeline(const View& view) {
  auto pipeline = Consumer(view);
  int64_t batches = 0;
  for (const record::Step* step : view.lead().steady) batches += step->batches;
  if (!pipeline || batches == 0) return std::nullopt;
  pipeline->batches_per_step =
      static_cast<double>(batches) / static_cast<double>(pipeline->consume_ns.size());
  return pipeline;
}

std::optional<Pipeline> OwnPipeline(const View& view, Feeder feeder, double fetch_ns, double fetch_cpu_ns,
                                    double waited) {
  auto pipeline = Consumer(view);
  if (!pipeline) return std::nullopt;
  pipeline->workers = feeder == Feeder::kProducer ? 1 : 0;
  pipeline->fetch_ns = {fetch_ns};
  pipeline->fetch_cpu_ns = fetch_cpu_ns;
  pipeline->cores = CoresLeft(view, waited) / static_cast<double>(view.RanksBesideEachOther());
  AddHandOver(view, *pipeline);
  const auto used = view.CoresOfCommand();
  if (!used) return pipeline;
  if (feeder ==
      Feeder::kProducer) {  // what the training leaves of the CPU time is all that the producer can have had
    const double left_ns = std::max(0.0, *used * view.lead().MeanStepNs() - MeanConsumeNs(*pipeline));
    pipeline->fetch_cpu_ns = std::min(pipeline->fetch_cpu_ns, left_ns);
  }
  AddTrainingCpu(view, *used, pipeline->fetch_cpu_ns, *pipeline);
  return pipeline;
}

std::optional<Pipeline> RecordedPipeline(const View& view) {
  auto training = TrainingPipeline(view);
  if (!training) return std::nullopt;
  const RankView& rank = view.lead();
  const record::Loader* loader = rank.TrainingLoader();
  if (!loader || loader->batches == 0 || loader->fetch_ns == 0) return std::nullopt;
  Pipeline& pipeline = *training;
  for (size_t i = 0; i < kQuantiles; ++i) {
    pipeline.fetch_ns.push_back(loader->batch_fetch_ns.Quantile((static_cast<double>(i) + 0.5) / kQuantiles));
  }
  // The sketch knows its mean exactly and its quantiles to a percent.
  const double mean = std::accumulate(pipeline.fetch_ns.begin(), pipeline.fetch_ns.end(), 0.0) / kQuantiles;
  const double correction = loader->batch_fetch_ns.mean() / std::max(1.0, mean);
  const double collected = CollectionsInFetchesNs(view) / std::max(1.0, pipeline.batches_per_step);
  const double kept = 1 - std::min(1.0, collected / std::max(1.0, loader->batch_fetch_ns.mean()));
  for (double& ns : pipeline.fetch_ns) ns *= correction * kept;
  pipeline.workers = loader->num_workers;
  pipeline.prefetch = loader->prefetch_factor.value_or(2);
  const double waited = static_cast<double>(loader->run_delay_ns) / static_cast<double>(loader->fetch_ns);
  pipeline.cores = CoresLeft(view, waited) / static_cast<double>(view.RanksBesideEachOther());
  pipeline.fetch_cpu_ns = kept * static_cast<double>(loader->cpu_ns) / static_cast<double>(loader->batches);
  AddHandOver(view, pipeline);
  AddStarts(rank, *loader, pipeline);
  if (const auto cpu = view.Mean(Metric::kProcessCpu, {{"role", "trainer"}})) {
    const double inline_fetch =
        loader->num_workers == 0 ? pipeline.batches_per_step * pipeline.fetch_cpu_ns : 0;
    AddTrainingCpu(view, *cpu, inline_fetch, pipeline);
  }
  return training;
}

Pipeline WithOwnBatches(const View& view, Pipeline pipeline) {
  pipeline.send_ns = pipeline.receive_ns = pipeline.turn_ns = 0;
  const double bytes = BytesOfBatch(view);
  const record::Loader* loader = view.lead().TrainingLoader();
  if (!loader || loader->num_workers == 0 || bytes == 0) return pipeline;
  const double received_ns = pipeline.batches_per_step * ReceiveNs(replay::Outlook::kExpected, bytes);
  pipeline.train_cpu_ns -= std::min(received_ns, kMostForTaking * pipeline.train_cpu_ns);
  if (!view.ComputesOnCpu()) return pipeline;  // there, another thread pins what was taken
  const double touched_ns = pipeline.batches_per_step * TouchNs(replay::Outlook::kExpected, bytes);
  for (double& ns : pipeline.consume_ns) ns -= std::min(touched_ns, kMostForTaking * ns);
  return pipeline;
}

Speedup PredictSpeedup(double recorded_step_ns, const Pipeline& changed) {
  const replay::Prediction step = replay::PredictStep(changed);
  return {recorded_step_ns / step.expected_ns, recorded_step_ns / step.cautious_ns,
          recorded_step_ns / step.hopeful_ns};
}

}  // namespace fullbore::diagnose
