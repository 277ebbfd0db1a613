// input-bound: the training thread waits inside the data loader's `next`. Which part of the loader limits it
// follows from what a fetch consists of: time blocked (storage), time in collate, or a heavy tail (a slow
// sample). The rest is CPU work, where what matters is whether cores are free for more workers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "explain/diagnose/advice.h"
#include "explain/diagnose/device_replay.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge.h"
#include "explain/diagnose/judge_input_bound_own.h"
#include "explain/diagnose/judge_input_bound_stages.h"
#include "explain/diagnose/library_options.h"
#include "explain/diagnose/recorded_pipeline.h"

namespace fullbore::diagnose {

using record::Loader;
using record::Metric;
using record::Share;
using replay::FewestWorkers;
using replay::Pipeline;
using replay::Replay;
using replay::Replayed;
using replay::WithWorkers;

namespace {

// A worker that waits for storage between samples comes back to cold caches and a lower clock: without the
// waits, its work took this fraction of the time (docs/measurements.md).
constexpr double kWithoutWaits = 0.95;
// Collate counts as blocked where it spends at least this part of its time off the cores: more than half.
constexpr double kMostlyBlocked = 0.5;

// What the fetch of an average batch consists of, in nanoseconds.
struct FetchParts {
  double total = 0;
  double collate = 0;
  double cpu = 0;
  double run_delay = 0;  // ready to run, but waiting for a core
  double blocked = 0;    // neither on a core nor waiting for one: storage, network, locks
  double tail = 0;       // by how much its slowest sample exceeds a usual one
  double samples = 1;

  double Part(double ns) const { return total > 0 ? ns / total : 0; }
};

FetchParts PartsOf(const Loader& loader) {
  FetchParts parts;
  const auto batches = static_cast<double>(std::max<int64_t>(1, loader.batches));
  parts.total = static_cast<double>(loader.fetch_ns) / batches;
  parts.collate = static_cast<double>(loader.collate_ns) / batches;
  parts.cpu = static_cast<double>(loader.cpu_ns) / batches;
  parts.run_delay = static_cast<double>(loader.run_delay_ns) / batches;
  parts.blocked = std::max(0.0, parts.total - parts.cpu - parts.run_delay);
  parts.samples = std::max(1.0, static_cast<double>(loader.samples) / batches);
  // A usual sample: the mean over all samples that are not the slowest of their batch. Batches with two slow
  // ones make it look longer than it is, so the tail is understated rather than overstated.
  if (parts.samples > 1.5) {
    const double slowest = loader.slowest_sample_ns.mean();
    const double usual = std::max(0.0, (parts.total - parts.collate - slowest) / (parts.samples - 1));
    // Even among usual samples the slowest takes a little longer: that is not a tail.
    const double ordinary = std::max(usual, loader.slowest_sample_ns.Quantile(0.1));
    parts.tail = std::max(0.0, slowest - ordinary);
  }
  return parts;
}

double Rate(double samples, double ns) { return ns > 0 ? samples / ns * 1e9 : 0; }

// What the causes share.
struct Input {
  const View& view;
  const RankView& rank;
  const Loader& loader;
  FetchParts parts;
  Pipeline pipeline;
  Finding finding;
};

void AddEvidence(Input& input) {
  const FetchParts& parts = input.parts;
  const EvidenceBuilder evidence(input.finding);
  const auto ms = [](double ns) { return ns / 1e6; };
  evidence.FromHook("time to fetch a batch", ms(parts.total), "ms");
  evidence.FromHook("of that on a core", parts.Part(parts.cpu), "ratio");
  evidence.FromHook("of that blocked (storage, network, locks)", parts.Part(parts.blocked), "ratio");
  evidence.FromHook("of that waiting for a free core", parts.Part(parts.run_delay), "ratio");
  evidence.FromHook("of that in collate", parts.Part(parts.collate), "ratio");
  evidence.FromHook("loader workers", static_cast<double>(input.loader.num_workers), "count");
  if (input.loader.num_workers > 0 && input.loader.worker_span_ns > 0) {
    const double busy = 1 - static_cast<double>(input.loader.worker_idle_ns) /
                                static_cast<double>(input.loader.worker_span_ns);
    evidence.FromHook("workers busy fetching", busy, "ratio");
  }
  evidence.FromMetric(Metric::kCpuUtilization, "CPU in use", input.view.Mean(Metric::kCpuUtilization));
  evidence.FromMetric(Metric::kGpuUtilization, "GPU utilisation", input.view.Mean(Metric::kGpuUtilization));
  evidence.FromMetric(Metric::kDiskRead, "read from disks", input.view.Sum(Metric::kDiskRead));
  evidence.FromMetric(Metric::kPsiIoSome, "some task stalled on I/O", input.view.Mean(Metric::kPsiIoSome));
  evidence.FromMetric(Metric::kCpuIowait, "CPU idle waiting for I/O", input.view.Mean(Metric::kCpuIowait));
}

void Predict(Input& input, const Pipeline& changed, const std::string& method) {
  input.finding.speedup = PredictSpeedup(input.rank.MeanStepNs(), changed);
  input.finding.method = method;
}

bool IsImageFolder(const Loader* loader) {
  static const std::set<std::string> folders = {"ImageFolder", "DatasetFolder", "ImageNet"};
  return loader && folders.contains(loader->dataset);
}

std::string FastDataCommand(const View& view) {
  std::string command;
  for (const std::string& word : view.stage().command) command += " " + ShellQuote(word);
  return "fullbore run --fast-data --" + (command.empty() ? " ..." : command);
}

constexpr const char* kKeepFastData = "keep it with one line: loader = fullbore.data.from_torch(loader)";

// Makes loading itself cheaper. fullbore.data reads what torchvision's image folders read. What it would gain is
// only promised where its cost was measured.
void AdviseCheaperLoading(const View& view, const Loader* loader, Finding& finding) {
  if (!IsImageFolder(loader)) {
    finding.fix.push_back(
        "make loading itself cheaper: do once, offline, what is the same in every epoch; whole-array calls "
        "instead of Python loops in __getitem__");
    return;
  }
  if (!loader->fast_refused.empty()) {
    finding.fix.push_back("fullbore.data cannot serve this loader: " + loader->fast_refused);
    return;
  }
  finding.fix.push_back(
      "make loading itself cheaper: try fullbore.data on the unchanged script (that run shows how much it "
      "gains): " +
      FastDataCommand(view));
  finding.fix.push_back(kKeepFastData);
}

std::string WaitsFor(const Input& input) {
  return fmt::format("Training waits for data {} of the time", FormatPercent(input.finding.share));
}

// No disk kept anything waiting: what blocks is elsewhere, and nothing here tells where.
bool StorageIsSilent(const View& view) {
  const auto iowait = view.Mean(Metric::kCpuIowait), stalled = view.Mean(Metric::kPsiIoSome);
  if (!iowait && !stalled) return false;
  return iowait.value_or(0) < kStorageSilent && stalled.value_or(0) < kStorageSilent;
}

void BlameStorage(Input& input) {
  const FetchParts& parts = input.parts;
  input.finding.cause = "storage";
  input.finding.title = fmt::format(
      "{}: {} of a batch's {} fetch is spent waiting{}, not computing.", WaitsFor(input),
      FormatPercent(parts.Part(parts.blocked)), FormatDuration(std::llround(parts.total)),
      StorageIsSilent(input.view) ? " (for a network, a lock or a sleep: no disk is busy)" : " for storage");
  input.finding.fix = {
      "keep the data on a faster or nearer disk, or in memory: copy it to local storage before training, or "
      "cache it",
      "store samples in large shards (tar files of thousands of samples), so that reads are long and "
      "sequential",
      "where latency rather than bandwidth limits the storage, more workers overlap more waits"};
  if (StorageIsSilent(input.view)) {
    input.finding.fix.insert(
        input.finding.fix.begin(),
        "find what the dataset's __getitem__ waits for, and do it once, before training");
  }
  Pipeline changed = input.pipeline;
  // After a wait for storage a worker also waits for a core before it goes on. Where cores are free, that is
  // only the time to wake up, and it goes away together with the wait.
  const double contended = std::min(1.0, input.view.Mean(Metric::kCpuUtilization).value_or(1));
  const double keep = parts.Part(parts.cpu * kWithoutWaits + parts.run_delay * contended);
  for (double& ns : changed.fetch_ns) ns *= keep;
  Predict(input, changed,
          "replay of the recorded steps with the time blocked on storage removed from every fetch");
}

void BlameCollate(Input& input) {
  const FetchParts& parts = input.parts;
  input.finding.cause = "collate";
  // Off the cores for most of it: it waits for something rather than computes.
  const bool blocked = parts.blocked >= kMostlyBlocked * parts.collate;
  input.finding.title = fmt::format(
      "{}: {} of a batch's fetch is spent in collate, {}.", WaitsFor(input),
      FormatPercent(parts.Part(parts.collate)),
      blocked ? "waiting (a lock, a sleep, a remote call), not computing" : "putting samples together");
  if (blocked) {
    input.finding.fix = {
        "find what collate waits for, and do it once, before training, or in the dataset's __getitem__, "
        "where more "
        "workers overlap it"};
  } else {
    input.finding.fix = {
        "build the batch with one vectorised operation (torch.stack of preallocated tensors) instead of "
        "Python "
        "loops",
        "do per-sample work in the dataset's __getitem__, where workers share it evenly",
        "pad to a few fixed lengths; let the dataset return tensors, not lists"};
  }
  Pipeline changed = input.pipeline;
  for (double& ns : changed.fetch_ns) ns *= 1 - parts.Part(parts.collate);
  changed.fetch_cpu_ns *= 1 - parts.Part(parts.collate);
  Predict(input, changed, "replay of the recorded steps with collate removed from every fetch");
}

void BlameSlowSample(Input& input) {
  const EvidenceBuilder evidence(input.finding);
  const FetchParts& parts = input.parts;
  const double usual = std::max(1.0, (parts.total - parts.collate - parts.tail) / parts.samples);
  input.finding.cause = "slow-sample";
  input.finding.title = fmt::format(
      "{}: a few samples take far longer than the rest and hold up their whole batch ({} in the slowest "
      "batches, {} usually).",
      WaitsFor(input), FormatDuration(std::llround(input.loader.slowest_sample_ns.Quantile(0.98))),
      FormatDuration(std::llround(usual)));
  input.finding.fix = {
      "find the slow samples (time __getitem__ by index) and fix them: oversized images, remote files, "
      "retries",
      "prepare them offline once, or cache their decoded form",
      "a larger prefetch_factor smooths the waits where slow samples are rare"};
  evidence.FromHook("the slowest sample of a batch, 98th percentile",
                    input.loader.slowest_sample_ns.Quantile(0.98) / 1e6, "ms");
  evidence.FromHook("a usual sample", usual / 1e6, "ms");
  Pipeline changed = input.pipeline;
  const double even = std::max(0.0, parts.total - parts.tail);
  changed.fetch_ns.assign(changed.fetch_ns.size(), even);
  changed.fetch_cpu_ns *= 1 - parts.Part(parts.tail);
  Predict(input, changed, "replay of the recorded steps with every sample as fast as a usual one");
}

// A worker starts as a copy of the trainer and shares most of its memory; at worst it grows as large.
void SayWhetherMemoryAllows(Input& input, int64_t more) {
  const auto free = input.view.Mean(Metric::kMemoryAvailable);
  const bool some = input.loader.num_workers > 0;
  const auto used = input.view.Mean(Metric::kProcessMemory, {{"role", some ? "loader" : "trainer"}});
  if (!free || !used) return;
  const double each = *used / static_cast<double>(some ? input.loader.num_workers : 1);
  const bool room = static_cast<double>(more) * each < *free;
  const std::string figures =
      fmt::format("{} free, at most {} per worker", FormatBytes(*free), FormatBytes(each));
  input.finding.fix.push_back(room ? "host memory allows more workers: " + figures
                                   : "host memory is tight, add workers one at a time: " + figures);
}

// The loader replaced by fullbore.data: its threads share the cores with the training, and its batches need no
// pickling. Nothing where its cost a sample was not measured.
std::optional<Pipeline> FastDataPipeline(const Input& input) {
  if (!input.loader.fast_sample_ns || input.view.cores() <= 0) return std::nullopt;
  Pipeline fast = WithWorkers(input.pipeline, std::max<int64_t>(1, std::llround(input.pipeline.cores)));
  const double batch_ns = static_cast<double>(*input.loader.fast_sample_ns) * input.parts.samples;
  fast.fetch_ns.assign(1, batch_ns);
  fast.fetch_cpu_ns = batch_ns;
  fast.send_ns = fast.receive_ns = 0;  // batches are written where the training reads them
  return fast;
}

// What can be done about CPU work in the loader, each with what the replay says of it.
struct CpuOptions {
  int64_t wanted = 0;  // workers
  Replayed with_workers;
  Speedup workers;              // with so many
  std::optional<Speedup> none;  // without any
  std::optional<Speedup> fast;  // with fullbore.data
  Speedup cheaper;              // with half the CPU time a batch

  bool Worth(const std::optional<Speedup>& speedup) const { return speedup && IsWorthwhile(*speedup); }
  bool FastIsBest() const {
    return Worth(fast) && (!Worth(workers) || fast->low > workers.low) &&
           (!Worth(none) || fast->low > none->low);
  }
  bool NoneIsBest() const { return Worth(none) && (!Worth(workers) || none->low > workers.low); }
};

CpuOptions OptionsOf(const Input& input) {
  const double step_ns = input.rank.MeanStepNs();
  const auto cores = static_cast<int64_t>(std::ceil(std::max(input.pipeline.cores, 1.0)));
  CpuOptions options;
  options.wanted = FewestWorkers(input.pipeline, std::max(cores, input.loader.num_workers));
  const Pipeline with_workers = WithWorkers(input.pipeline, options.wanted);
  options.with_workers = Replay(with_workers);
  if (options.wanted != input.loader.num_workers) options.workers = PredictSpeedup(step_ns, with_workers);
  if (input.loader.num_workers > 0) options.none = PredictSpeedup(step_ns, WithWorkers(input.pipeline, 0));
  if (const auto fast = FastDataPipeline(input)) options.fast = PredictSpeedup(step_ns, *fast);
  Pipeline halved = input.pipeline;
  for (double& ns : halved.fetch_ns) ns /= 2;
  halved.fetch_cpu_ns /= 2;
  options.cheaper = PredictSpeedup(step_ns, halved);
  return options;
}

std::string CoresText(const Input& input) { return FormatCount(std::round(10 * input.pipeline.cores) / 10); }

void AdviseWorkers(Input& input, const CpuOptions& options) {
  const int64_t wanted = options.wanted;
  Finding& finding = input.finding;
  finding.change = fmt::format("DataLoader(num_workers={})", wanted);
  const Replayed& replayed = options.with_workers;
  finding.fix = {fmt::format("DataLoader(num_workers={}): the fewest that {}", wanted,
                             replayed.cpu_bound || replayed.wait_ns > kStillWaits * replayed.step_ns
                                 ? "come close to the best these cores allow"
                                 : "keep the training from waiting")};
  AdviseCheaperLoading(input.view, &input.loader, finding);
  finding.speedup = options.workers;
  finding.method = fmt::format(
      "replay of the recorded steps with {} worker{} at the measured fetch time, on {} cores shared with the "
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
  finding.method = fmt::format(
      "replay of the recorded steps with fullbore.data's measured {} of CPU a sample, on {} cores shared "
      "with "
      "the training",
      FormatDuration(*input.loader.fast_sample_ns), CoresText(input));
}

void AdviseNoWorkers(Input& input, const CpuOptions& options) {
  Finding& finding = input.finding;
  finding.change = "DataLoader(num_workers=0)";
  finding.fix = {
      "DataLoader(num_workers=0): fetching a batch costs less than handing it over from another process"};
  finding.speedup = *options.none;
  finding.method = "replay of the recorded steps with every batch fetched by the training thread";
}

// Nothing that can be switched on gains: what is left is to make the work itself cheaper.
void SayWorkersWillNotHelp(Input& input, const CpuOptions& options) {
  Finding& finding = input.finding;
  finding.fix = {
      options.with_workers.cpu_bound
          ? "more workers will not help: the cores are full, and a worker takes from the computation what "
            "it brings"
          : "more workers will not help: handing their batches over costs what they bring"};
  AdviseCheaperLoading(input.view, &input.loader, finding);
  if (IsWorthwhile(options.cheaper)) {
    finding.fix.push_back(fmt::format("half the CPU time a sample would make the run about {:.2f}x as fast",
                                      options.cheaper.expected));
    finding.fix.push_back("give the run more CPU cores");
  } else {
    finding.severity = Severity::kInfo;  // real, but nothing to act on
  }
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
  input.finding.speedup = RemovalOf(share, 0.5);
  input.finding.method = "the waits at epoch starts removed; at the low end, half of them";
  // fullbore.data starts nothing anew, and loads at less cost.
  const auto fast = FastDataPipeline(input);
  if (!fast) return;
  const Speedup gain = PredictSpeedup(input.rank.MeanStepNs(), *fast);
  if (IsWorthwhile(gain) && gain.low > input.finding.speedup.low)
    AdviseFastData(input, gain, "DataLoader(persistent_workers=True)", input.finding.speedup);
}

// CPU work in the loader: more workers where cores are idle, a cheaper loader, or else less work.
void BlameCpu(Input& input) {
  const EvidenceBuilder evidence(input.finding);
  const Loader& loader = input.loader;
  const CpuOptions options = OptionsOf(input);
  const double train_rate = Rate(input.parts.samples * input.pipeline.batches_per_step,
                                 input.rank.MeanStepNs() * (1 - input.finding.share));
  const double loader_rate = Rate(
      input.parts.samples * static_cast<double>(std::max<int64_t>(1, loader.num_workers)), input.parts.total);
  evidence.FromHook("the loader alone delivers", loader_rate, "samples/s");
  evidence.FromHook("the training could take", train_rate, "samples/s");
  evidence.FromMetric(Metric::kProcessCpu, "cores the training itself uses",
                      input.pipeline.train_cpu_ns / std::max(1.0, input.rank.MeanStepNs()));
  if (loader.fast_sample_ns)
    evidence.FromHook("CPU a sample with fullbore.data", static_cast<double>(*loader.fast_sample_ns) / 1e6,
                      "ms");
  const std::string rates = fmt::format("{} samples/s, the training could take {}", FormatCount(loader_rate),
                                        FormatCount(train_rate));
  const bool more = options.wanted > loader.num_workers && options.Worth(options.workers);
  if (loader.num_workers > 0 && loader_rate > train_rate) {
    input.finding.cause = "hand-over";
    input.finding.title = fmt::format(
        "{}, although the loader alone delivers {}: the wait is for batches to be handed over from the "
        "workers, and "
        "for cores.",
        WaitsFor(input), rates);
  } else if (loader.num_workers == 0) {
    input.finding.cause = more ? "no-workers" : "decode";
    input.finding.title = fmt::format("{}: the training thread loads every batch itself (num_workers=0){}",
                                      WaitsFor(input), more ? "." : ", and no core is left for workers.");
  } else if (more) {
    input.finding.cause = "too-few-workers";
    input.finding.title =
        fmt::format("{}: {} loader worker{} deliver{} {}.", WaitsFor(input), loader.num_workers,
                    loader.num_workers == 1 ? "" : "s", loader.num_workers == 1 ? "s" : "", rates);
  } else {
    input.finding.cause = "decode";
    input.finding.title =
        fmt::format("{}: the loader's CPU work sets the pace ({}), and no core is left for more workers.",
                    WaitsFor(input), rates);
  }
  if (options.FastIsBest()) {
    const std::string workers = fmt::format("DataLoader(num_workers={})", options.wanted);
    return AdviseFastData(input, *options.fast, workers, options.workers);
  }
  if (options.NoneIsBest()) return AdviseNoWorkers(input, options);
  if (more) return AdviseWorkers(input, options);
  SayWorkersWillNotHelp(input, options);
}

// More workers cost host memory: shows whether there is room for them.
void AddMemoryEvidence(Input& input) {
  const EvidenceBuilder evidence(input.finding);
  const auto used = input.view.Mean(Metric::kProcessMemory, {{"role", "loader"}});
  const auto free = input.view.Mean(Metric::kMemoryAvailable);
  evidence.FromMetric(Metric::kMemoryAvailable, "host memory free for more workers", free);
  if (used && input.loader.num_workers > 0) {
    evidence.FromMetric(Metric::kProcessMemory, "memory of one worker now",
                        *used / static_cast<double>(input.loader.num_workers));
  }
}

void Explain(Input& input) {
  const double restart_share = EpochStartShare(input.rank, input.loader);
  const FetchParts& parts = input.parts;
  if (input.loader.num_workers > 0 && restart_share > input.finding.share / 2)
    return BlameRestarts(input, restart_share);
  // A tail also shows as blocked time or CPU time. It is the more specific cause, so it is checked first.
  if (parts.Part(parts.tail) >= kPartOfFetch) return BlameSlowSample(input);
  if (parts.Part(parts.collate) >= kPartOfFetch) return BlameCollate(input);
  if (parts.Part(parts.blocked) >= kPartOfFetch) return BlameStorage(input);
  BlameCpu(input);
}

// No fetch was recorded: we know how long training waits, but not why the loader is slow.
Finding FromWaitAlone(const View& view, Finding finding, Diagnosis& diagnosis) {
  const RankView& rank = view.lead();
  const EvidenceBuilder evidence(finding);
  const bool single = view.Fact("loader_processes") == "single";
  finding.title =
      fmt::format("Training waits for data {} of the time{}", FormatPercent(finding.share),
                  single ? ": the training thread loads every batch itself (num_workers=0)." : ".");
  if (single) finding.cause = "no-workers";
  finding.fix = {
      single
          ? "load in worker processes: DataLoader(num_workers=...), as many as keep the device from waiting"
          : "raise the loader's num_workers as long as cores are free"};
  AdviseCheaperLoading(view, rank.TrainingLoader(), finding);
  finding.fix.push_back("read from a faster or nearer data store");
  evidence.FromSteps(rank, "device idle while waiting for the loader",
                     finding.share * rank.MeanStepNs() / 1e6, "ms per step");
  PointAtWorstStep(rank, Share::kDataWait, finding);
  if (const auto gain = GainOf(rank, {replay::ChangeNamed("workers")})) {
    finding.speedup = *gain;
    finding.method =
        "the recorded steps run again with the wait hidden by workers, except for taking each batch from "
        "them";
  }
  diagnosis.not_judged.push_back({"which part of the loader is slow", "no fetch of a DataLoader was recorded",
                                  "fullbore run -- COMMAND: it looks into the loader's workers"});
  return finding;
}

void SayWhatWouldNotHelp(const View& view, double share, Diagnosis& diagnosis) {
  const Loader* loader = view.lead().TrainingLoader();
  if (share >= kDataWait.warning || !loader) return;
  const std::string waits = fmt::format("training waits for data only {} of the time", FormatPercent(share));
  const bool threads = loader->library == record::kFullboreData;
  diagnosis.would_not_help.push_back({threads ? "more threads in the loader" : "more loader workers", waits});
  diagnosis.would_not_help.push_back({"a faster disk", waits});
}

}  // namespace

std::optional<Finding> JudgeInputBound(const View& view, Diagnosis& diagnosis) {
  const RankView& rank = view.lead();
  const double share = rank.Ratio(Share::kDataWait);
  SayWhatWouldNotHelp(view, share, diagnosis);
  const auto severity = SeverityOf(share, kDataWait, Observations(rank));
  if (!severity) return std::nullopt;
  Finding finding;
  finding.severity = *severity;
  finding.share = share;
  finding.where = view.HottestLines(Share::kDataWait);
  const Loader* loader = rank.TrainingLoader();
  const bool staged = loader && loader->library == record::kFullboreData;
  const auto pipeline = staged ? std::nullopt : RecordedPipeline(view);
  if (!loader) {
    if (auto own = FromOwnFeed(view, finding, diagnosis)) return own;
  }
  if (!staged && (!loader || !pipeline)) {
    return FromWaitAlone(view, std::move(finding), diagnosis);
  }
  if (staged) {
    ExplainByStages(view, *loader, finding, diagnosis);
  } else {
    Input input{view, rank, *loader, PartsOf(*loader), *pipeline, std::move(finding)};
    AddEvidence(input);
    AddMemoryEvidence(input);
    Explain(input);
    finding = std::move(input.finding);
  }
  if (const auto rule = DeviceAgainstCpu(view)) finding.fix.push_back(*rule);
  const std::string option = OptionOf(LibraryIn(rank, Share::kDataWait), "own-loader");
  if (!option.empty() && finding.change.find("num_workers") != std::string::npos)
    finding.fix.insert(finding.fix.begin() + 1, option);
  PointAtWorstStep(rank, Share::kDataWait, finding);
  if (!loader->where.empty()) finding.where.insert(finding.where.begin(), PlaceOf(loader->where));
  const auto stalled = view.Mean(Metric::kPsiIoSome);
  if (finding.cause != "storage" && stalled && *stalled < kDataWait.warning) {
    diagnosis.would_not_help.push_back(
        {"a faster disk", fmt::format("tasks stalled on I/O only {} of the time: the data comes from memory",
                                      FormatPercent(*stalled))});
  }
  return finding;
}

}  // namespace fullbore::diagnose
