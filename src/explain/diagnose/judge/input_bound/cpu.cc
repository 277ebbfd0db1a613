#include "explain/diagnose/judge/input_bound/cpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "explain/diagnose/advice.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/recorded_pipeline.h"
#include "explain/diagnose/shared_cores.h"
#include "explain/diagnose/thresholds.h"

namespace fullbore::diagnose {

using record::Loader;
using record::Metric;
using replay::FewestWorkers;
using replay::Pipeline;
using replay::Replay;
using replay::Replayed;
using replay::WithWorkers;

namespace {

// Steps far from an epoch's begin still pay for it a little: how much faster than them all may become, a choice.
constexpr double kMoreThanUsual = 1.15;

// Of a fetch that waits for a core nearly all the time, what remains is not believed to be less than this much less.
constexpr double kMostRunDelay = 0.95;

// The loader replaced by fullbore.data: its threads share the cores with the training, and its batches need no
// pickling. Nothing where its cost a sample was not measured.
std::optional<Pipeline> FastDataPipeline(const Input& input) {
  if (!input.loader.fast_sample_ns || input.view.cores() <= 0) return std::nullopt;
  Pipeline fast = WithWorkers(input.pipeline, std::max<int64_t>(1, std::llround(input.pipeline.cores)));
  const double batch_ns = static_cast<double>(*input.loader.fast_sample_ns) * input.parts.samples;
  fast.fetch_ns.assign(1, batch_ns);
  fast.fetch_cpu_ns = batch_ns;
  fast.starts_per_step = 0;                            // its threads outlive an epoch
  return WithOwnBatches(input.view, std::move(fast));  // they are written where the training reads them
}

// What can be done about CPU work in the loader, each with what the replay says of it.
struct CpuOptions {
  int64_t wanted = 0;  // workers
  Replayed with_workers;
  Speedup workers;              // with so many
  std::optional<Speedup> none;  // without any
  std::optional<Speedup> fast;  // with fullbore.data
  Speedup cheaper;              // with half the CPU time a batch
  // So many would gain if other programs left their cores to this one; 0 where they are not in the way.
  int64_t wanted_alone = 0;
  SharedCores shared;

  bool Worth(const std::optional<Speedup>& speedup) const { return speedup && IsWorthwhile(*speedup); }
  bool FastIsBest() const {
    return Worth(fast) && (!Worth(workers) || fast->low > workers.low) &&
           (!Worth(none) || fast->low > none->low) && (!Worth(shared.gain) || fast->low > shared.gain->low);
  }
  bool NoneIsBest() const { return Worth(none) && (!Worth(workers) || none->low > workers.low); }
  bool SharedIsBest() const {
    return Worth(shared.gain) && (!Worth(workers) || shared.gain->low > workers.low) &&
           (!Worth(none) || shared.gain->low > none->low);
  }
};

// The fewest workers that bring the most: of the cores, some may be free.
int64_t WantedWorkers(const Pipeline& pipeline, int64_t now) {
  const auto cores = static_cast<int64_t>(std::ceil(std::max(pipeline.cores, 1.0)));
  return FewestWorkers(pipeline, std::max(cores, now));
}

CpuOptions OptionsOf(const Input& input) {
  const double step_ns = input.rank.MeanStepNs();
  const int64_t now = input.loader.num_workers;
  CpuOptions options;
  options.wanted = WantedWorkers(input.pipeline, now);
  const Pipeline with_workers = WithWorkers(input.pipeline, options.wanted);
  options.with_workers = Replay(with_workers);
  if (options.wanted > now) options.workers = PredictSpeedup(step_ns, with_workers);
  if (now > 0) options.none = PredictSpeedup(step_ns, WithWorkers(input.pipeline, 0));
  if (const auto fast = FastDataPipeline(input)) options.fast = PredictSpeedup(step_ns, *fast);
  options.shared = ShareCores(input.pipeline, step_ns);
  Pipeline halved = input.pipeline;
  for (double& ns : halved.fetch_ns) ns /= 2;
  halved.fetch_cpu_ns /= 2;
  options.cheaper = PredictSpeedup(step_ns, halved);
  if (input.pipeline.cores < input.pipeline.cores_alone) {
    Pipeline alone = input.pipeline;
    alone.cores = alone.cores_alone;
    const int64_t wanted = WantedWorkers(alone, now);
    if (wanted > now && IsWorthwhile(PredictSpeedup(step_ns, WithWorkers(alone, wanted))))
      options.wanted_alone = wanted;
  }
  return options;
}

// "1.7": of the cores that are left, and who has the others.
std::string CoresText(const Input& input) {
  const std::string cores = FormatCount(std::round(10 * input.pipeline.cores) / 10);
  constexpr double kWorthSaying = 0.99;
  if (input.pipeline.cores >= kWorthSaying * input.pipeline.cores_alone) return cores + " cores";
  return fmt::format("{} cores (other programs use {} of {})", cores,
                     FormatCount(input.view.CoresOfOthers().value_or(0)), FormatCount(input.view.cores()));
}

void AdviseWorkers(Input& input, const CpuOptions& options) {
  const int64_t wanted = options.wanted;
  Finding& finding = input.finding;
  finding.change = fmt::format("DataLoader(num_workers={})", wanted);
  const Replayed& replayed = options.with_workers;
  finding.fix = {fmt::format("DataLoader(num_workers={}): the fewest that {}", wanted,
                             replayed.cpu_bound || replayed.wait_ns > kStillWaits * replayed.step_ns
                                 ? "come close to the best these cores allow"
                                 : "keep the training from waiting")};
  SayWhatWorkersImport(input);
  AdviseCheaperLoading(input.view, &input.loader, finding);
  finding.speedup = options.workers;
  finding.costs = replay::Cost::kMemory;
  finding.method = fmt::format(
      "replay of the recorded steps with {} worker{} at the measured fetch time, on {} shared with the "
      "training",
      wanted, wanted == 1 ? "" : "s", CoresText(input));
  SayWhetherMemoryAllows(input, wanted - input.loader.num_workers);
  if (replayed.cpu_bound)
    finding.fix.push_back("more workers than that do not help: no core is left for them");
}

void AdviseFastData(Input& input, const Speedup& gain, const std::string& other, const Speedup& of_other) {
  Finding& finding = input.finding;
  finding.change = FastDataCommand(input.view);
  finding.fix = {finding.change + ": the unchanged script, its batches served by fullbore.data",
                 kKeepFastData};
  if (IsWorthwhile(of_other)) {
    finding.fix.push_back(fmt::format("or {}, which is predicted to be {:.2f}x to {:.2f}x as fast", other,
                                      of_other.low, of_other.high));
  }
  finding.speedup = gain;
  finding.costs = replay::Cost::kNothing;
  finding.method = fmt::format(
      "replay of the recorded steps with fullbore.data's measured {} of CPU a sample, on {} shared "
      "with the training",
      FormatDuration(*input.loader.fast_sample_ns), CoresText(input));
}

// "while other programs use 0.70 of 2 cores, ": of advice that would lose without them; empty where it holds then, too.
std::string OnlyNow(const Input& input, const Pipeline& changed) {
  if (input.pipeline.cores >= input.pipeline.cores_alone) return "";
  Pipeline alone = input.pipeline, with = changed;
  alone.cores = with.cores = input.pipeline.cores_alone;
  if (PredictSpeedup(Replay(alone).step_ns, with).low > 1) return "";
  return fmt::format("while other programs use {} of {} cores, ",
                     FormatCount(input.view.CoresOfOthers().value_or(0)), FormatCount(input.view.cores()));
}

void AdviseSharing(Input& input, const SharedCores& shared) {
  const Pipeline changed =
      WithThreads(WithWorkers(input.pipeline, shared.workers), static_cast<double>(shared.threads));
  input.finding.change = ChangeOf(shared);
  input.finding.fix = {OnlyNow(input, changed) + ChangeOf(shared) + ": " + kWhySharing};
  SayWhatWorkersImport(input);
  AdviseCheaperLoading(input.view, &input.loader, input.finding);
  input.finding.speedup = *shared.gain;
  input.finding.costs = replay::Cost::kMemory;
  input.finding.method = fmt::format(
      "replay of the recorded steps with {} worker{} at the measured fetch time beside {} intra-op thread{}, "
      "on {}",
      shared.workers, shared.workers == 1 ? "" : "s", shared.threads, shared.threads == 1 ? "" : "s",
      CoresText(input));
}

void AdviseNoWorkers(Input& input, const CpuOptions& options) {
  Finding& finding = input.finding;
  finding.change = "DataLoader(num_workers=0)";
  finding.fix = {
      OnlyNow(input, WithWorkers(input.pipeline, 0)) +
      "DataLoader(num_workers=0): fetching a batch costs less than handing it over from another process"};
  finding.speedup = *options.none;
  finding.costs = replay::Cost::kNothing;
  finding.method = "replay of the recorded steps with every batch fetched by the training thread";
}

// Where more workers do not help, what they do has to become cheaper.
void SayWhatWorkersDo(Input& input) {
  const std::string what = WhatFetchesDo(input.loader);
  if (input.loader.num_workers == 0 || what.empty()) return;
  ReplaceFullStop(input.finding.title, fmt::format("; {}.", what));
}

// Files that are compressed in chunks are decompressed chunk by chunk, however little of one is wanted.
void SayWhatChunksCost(Input& input) {
  const std::string what = input.loader.num_workers > 0 ? WhatFetchesDo(input.loader) : "";
  const bool chunked = std::ranges::any_of(std::array{", in h5py", ", in zarr", ", in tables"},
                                           [&](const char* library) { return what.ends_with(library); });
  if (!chunked) return;
  input.finding.fix.emplace_back(
      "if a chunk of its file holds several samples, each of them reads and decompresses all of it: chunks "
      "of one sample, or samples in the order of the chunks");
}

// Nothing that can be switched on gains: what is left is to make the work itself cheaper.
void SayWorkersWillNotHelp(Input& input, const CpuOptions& options) {
  Finding& finding = input.finding;
  SayWhatChunksCost(input);
  if (options.wanted_alone > 0) {
    finding.fix.push_back(fmt::format(
        "other programs keep {} of {} cores busy: end them, or get cores of your own; with those, "
        "DataLoader(num_workers={})",
        FormatCount(input.view.CoresOfOthers().value_or(0)), FormatCount(input.view.cores()),
        options.wanted_alone));
  }
  finding.fix.push_back(
      options.with_workers.cpu_bound
          ? "more workers will not help: the cores are full, and a worker takes from the computation what "
            "it brings"
          : "more workers will not help: handing their batches over costs what they bring");
  AdviseCheaperLoading(input.view, &input.loader, finding);
  if (IsWorthwhile(options.cheaper)) {
    finding.fix.push_back(fmt::format("half the CPU time a sample would make the run about {:.2f}x as fast",
                                      options.cheaper.expected));
    finding.fix.push_back("give the run more CPU cores");
  } else {
    finding.severity = Severity::kInfo;  // real, but nothing to act on
  }
}

// Starting processes costs more than the wait for them: each page that the trainer then writes to must be copied first.
// So the steps that begin an epoch are taken to become like the others; at the low end, half of the waits go.
Speedup WithoutRestarts(const Input& input, double share) {
  const Speedup waits = RemovalOf(share, 0.5);
  const auto usual_start = static_cast<double>(input.loader.restart_wait_ns) /
                           static_cast<double>(std::max<int64_t>(1, input.loader.restarts));
  double others_ns = 0, others = 0;
  for (const record::Step* step : input.rank.steady) {
    const auto wait_ns = static_cast<double>(step->share_ns[Index(record::Share::kDataWait)]);
    if (wait_ns >= usual_start / 2) continue;  // it begins an epoch
    others_ns += static_cast<double>(step->wall_ns);
    ++others;
  }
  if (others == 0) return waits;
  const double gain = input.rank.MeanStepNs() * others / others_ns;
  return {std::max(gain, waits.expected), waits.low, kMoreThanUsual * std::max(gain, waits.high)};
}

}  // namespace

void BlameSampler(Input& input, double share) {
  const record::Loader& loader = input.loader;
  Finding& finding = input.finding;
  finding.cause = "sampler";
  finding.title = fmt::format(
      "{}: {} times, at the start of an epoch, its sampler took {} to draw the order of {} samples, in the "
      "training's own process.",
      WaitsFor(input), loader.draws, FormatDuration(loader.draw_ns / std::max<int64_t>(1, loader.draws)),
      loader.dataset_samples ? FormatCount(static_cast<double>(*loader.dataset_samples))
                             : std::string("all"));
  finding.fix = {
      "draw only as many as an epoch takes: RandomSampler(dataset, replacement=True, num_samples=...), or a "
      "sampler that yields indices as it goes, without a list of them all",
      "make epochs longer: the order is drawn once for each",
      "more workers, or workers that are kept, do not change it"};
  finding.speedup = RemovalOf(share, 0.5);
  finding.method = "the time in the sampler removed; at the low end, half of it";
}

void BlameSamplerOfEachBatch(Input& input, double part) {
  const double draw_ns = input.loader.wait_ns.mean() * part;
  Finding& finding = input.finding;
  finding.cause = "sampler";
  finding.title = fmt::format("{}: {} of that its sampler takes to draw the samples of a batch, {} each.",
                              WaitsFor(input), FormatPercent(part), FormatDuration(std::llround(draw_ns)));
  finding.fix = {
      "prepare once what the sampler computes for each batch (an order, a sorted list of lengths), and take the next "
      "part of it",
      "more workers do not change it: the sampler runs in the training's own process"};
  const EvidenceBuilder evidence(finding);
  evidence.FromHook("of the wait, outside of fetches", part, "ratio");
  finding.speedup = RemovalOf(finding.share * part, 0.5);
  finding.method = "the time in the sampler removed; at the low end, half of it";
}

void BlameRestarts(Input& input, double share) {
  input.finding.cause = "epoch-start";
  input.finding.title = fmt::format(
      "{}: {} times, at the start of an epoch, it waited {} for new workers and their first batch.",
      WaitsFor(input), input.loader.restarts,
      FormatDuration(input.loader.restart_wait_ns / std::max<int64_t>(1, input.loader.restarts)));
  input.finding.change = "DataLoader(persistent_workers=True)";
  input.finding.fix = {
      "keep the workers between epochs: DataLoader(persistent_workers=True)",
      "make starting cheaper: open files in the worker, not in the dataset's constructor; fewer workers"};
  input.finding.speedup = WithoutRestarts(input, share);
  input.finding.costs = replay::Cost::kMemory;
  input.finding.method =
      "epochs begin with a step like the others; at the low end, half of the waits are removed";
  // fullbore.data starts nothing anew, and loads at less cost.
  const auto fast = FastDataPipeline(input);
  if (!fast) return;
  const Speedup gain = PredictSpeedup(input.rank.MeanStepNs(), *fast);
  if (IsWorthwhile(gain) && gain.low > input.finding.speedup.low)
    AdviseFastData(input, gain, "DataLoader(persistent_workers=True)", input.finding.speedup);
}

// Processes that may run on fewer cores than the command has: the others can be idle while these are full. Workers
// inherit what the training thread may.
static bool BlameAffinity(Input& input) {
  const bool workers = input.loader.num_workers > 0;
  const auto allowed = input.view.NarrowAffinity(workers ? "loader" : "trainer");
  const FetchParts& parts = input.parts;
  if (!allowed || parts.Part(parts.run_delay) < kThreadsQueue.warning) return false;
  Finding& finding = input.finding;
  finding.cause = "affinity";
  finding.title = fmt::format(
      "{}: {} may run on {} of the command's {} cores only, and {} of a fetch is spent waiting for them.",
      WaitsFor(input),
      workers ? "the loader's workers" : "the training process, which loads its batches itself,",
      FormatCount(*allowed), FormatCount(input.view.cores()), FormatPercent(parts.Part(parts.run_delay)));
  finding.fix = {
      "let them run on all cores: os.sched_setaffinity(0, range(os.cpu_count())) in worker_init_fn, or in "
      "the script before the loader is made",
      "find what narrows it: taskset, numactl, OMP_PROC_BIND, GOMP_CPU_AFFINITY, KMP_AFFINITY, or a library "
      "that pins the process when it is imported"};
  const EvidenceBuilder evidence(finding);
  evidence.FromSeries(Metric::kProcessCpusAllowed, {{"role", workers ? "loader" : "trainer"}},
                      "cores that they may use", allowed);
  evidence.FromMachine("cores", input.view.cores(), "count");
  if (!workers) return true;
  Pipeline changed = input.pipeline;
  for (double& ns : changed.fetch_ns) ns *= 1 - std::min(parts.Part(parts.run_delay), kMostRunDelay);
  finding.speedup = PredictSpeedup(input.rank.MeanStepNs(), changed);
  finding.method = "replay of the recorded steps with fetches that do not wait for a core, on all cores";
  return true;
}

void BlameCpu(Input& input) {
  if (BlameAffinity(input)) return;
  const EvidenceBuilder evidence(input.finding);
  const Loader& loader = input.loader;
  const CpuOptions options = OptionsOf(input);
  const double train_rate = TrainingRate(input), loader_rate = LoaderRate(input);
  evidence.FromHook("the loader alone delivers", loader_rate, "samples/s");
  evidence.FromHook("the training could take", train_rate, "samples/s");
  evidence.FromMetric(Metric::kProcessCpu, "cores the training itself uses",
                      input.pipeline.train_cpu_ns / std::max(1.0, input.rank.MeanStepNs()));
  if (loader.fast_sample_ns)
    evidence.FromHook("CPU a sample with fullbore.data", static_cast<double>(*loader.fast_sample_ns) / 1e6,
                      "ms");
  const std::string rates =
      input.view.sampling()
          ? fmt::format("{} of what the training could take", FormatPercent(loader_rate / train_rate))
          : fmt::format("{} samples/s, the training could take {}", FormatCount(loader_rate),
                        FormatCount(train_rate));
  const bool more = (options.wanted > loader.num_workers && options.Worth(options.workers)) ||
                    (options.shared.workers > loader.num_workers && options.SharedIsBest());
  const bool others = !more && options.wanted_alone > 0;
  if (KeepsUp(input)) {
    input.finding.cause = "hand-over";
    input.finding.title = fmt::format(
        "{}, although the loader alone delivers {}: the wait is for batches to be handed over from the "
        "workers, and for cores.",
        WaitsFor(input), rates);
  } else if (loader.num_workers == 0) {
    input.finding.cause = more || others ? "no-workers" : "decode";
    input.finding.title =
        fmt::format("{}: the training thread loads every batch itself (num_workers=0){}", WaitsFor(input),
                    more     ? "."
                    : others ? ", and other programs keep the cores busy that workers need."
                             : ", and no core is left for workers.");
  } else if (more || others) {
    input.finding.cause = "too-few-workers";
    input.finding.title =
        fmt::format("{}: {} loader worker{} deliver{} {}{}.", WaitsFor(input), loader.num_workers,
                    loader.num_workers == 1 ? "" : "s", loader.num_workers == 1 ? "s" : "", rates,
                    more ? "" : ", and other programs keep the cores busy that more would need");
  } else {
    input.finding.cause = "decode";
    input.finding.title =
        fmt::format("{}: the loader's CPU work sets the pace ({}), and no core is left for more workers.",
                    WaitsFor(input), rates);
  }
  if (!more) SayWhatWorkersDo(input);
  if (options.FastIsBest()) {
    const std::string workers = fmt::format("DataLoader(num_workers={})", options.wanted);
    return AdviseFastData(input, *options.fast, workers, options.workers);
  }
  if (options.SharedIsBest()) return AdviseSharing(input, options.shared);
  if (options.NoneIsBest()) return AdviseNoWorkers(input, options);
  if (more) return AdviseWorkers(input, options);
  SayWorkersWillNotHelp(input, options);
}

}  // namespace fullbore::diagnose
