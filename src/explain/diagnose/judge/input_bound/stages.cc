// Each thread of fullbore.data takes a sample through all stages, one after the other, so the stage that
// takes most of the threads' time is the bottleneck. Two things complicate that. Only a limited number of
// threads may use a core at a time to decode, transform and collate; meanwhile others may sit in a read,
// which costs nothing as long as they queue for a core afterwards. And if threads wait for room among the
// finished batches although the training waits for data, no stage is too slow on average: the work comes in
// bursts.
#include "explain/diagnose/judge/input_bound/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/recorded_pipeline.h"
#include "explain/diagnose/thresholds.h"
#include "record/loader_stage.h"

namespace fullbore::diagnose {

using record::LoaderStage;
using record::Metric;
using replay::Pipeline;

namespace {

using enum LoaderStage;

bool OnCore(LoaderStage stage) { return stage == kDecode || stage == kTransform || stage == kCollate; }

// Means over the steady state, in threads.
struct Stages {
  std::array<double, record::kLoaderStages.size()> busy_of{};
  double threads = 0;         // in all
  double on_cores = 0;        // that may use a core at a time
  double want_core = 0;       // waiting for one of those places
  double off_core = 0;        // part of Busy(kUser): waiting inside it
  double no_room = 0;         // waiting for room among the finished batches
  double training_waits = 0;  // ratio of the time, by the loader's own clock

  double& Busy(LoaderStage stage) { return busy_of[Index(stage)]; }
  double Busy(LoaderStage stage) const { return busy_of[Index(stage)]; }
  double Core() const { return Busy(kDecode) + Busy(kTransform) + Busy(kCollate); }
  double All() const { return Core() + Busy(kRead) + Busy(kUser) + Busy(kCopy); }
  // Threads queue for a core: the work on the cores is the bottleneck, however long others sit in a read.
  bool CoresBind() const { return want_core > kPartOfFetch * on_cores; }
};

record::Labels LabelsOf(const View& view, const record::Loader& loader,
                        std::optional<LoaderStage> stage = {}) {
  record::Labels labels = {{"loader", std::to_string(loader.id)},
                           {"rank", std::to_string(view.lead().info->rank)}};
  if (stage) labels["stage"] = Name(*stage);
  return labels;
}

std::optional<Stages> RecordedStages(const View& view, const record::Loader& loader) {
  const auto mean = [&](Metric metric, std::optional<LoaderStage> stage = {}) {
    return view.Mean(metric, LabelsOf(view, loader, stage));
  };
  const auto threads = mean(Metric::kLoaderThreads, kRead), on_cores = mean(Metric::kLoaderThreads, kCollate);
  const auto waits = mean(Metric::kLoaderWait);
  if (!threads || !on_cores || !waits) return std::nullopt;
  Stages stages;
  for (const LoaderStage stage : record::kLoaderStages)
    stages.Busy(stage) = mean(Metric::kLoaderBusy, stage).value_or(0);
  stages.threads = *threads;
  stages.on_cores = *on_cores;
  stages.want_core = mean(Metric::kLoaderBlockedCore).value_or(0);
  stages.off_core = mean(Metric::kLoaderBlockedUser).value_or(0);
  stages.Busy(kUser) += stages.off_core;
  stages.no_room = mean(Metric::kLoaderBlockedRoom).value_or(0);
  stages.training_waits = *waits;
  return stages.All() > 0 ? std::optional(stages) : std::nullopt;
}

// What the causes share.
struct Judged {
  const View& view;
  const record::Loader& loader;
  Stages stages;
  Finding& finding;

  std::string Waits() const {
    return fmt::format("Training waits for data {} of the time", FormatPercent(finding.share));
  }
  // "ImageFolder(threads=0)": the changed argument of the call that made the loader.
  std::string Call(const std::string& argument) const {
    return fmt::format("{}({})", loader.dataset.empty() ? "Loader" : loader.dataset, argument);
  }
  // "1.40 threads at a time, of 2 that may use a core"
  std::string AtATime(LoaderStage stage) const {
    const std::string busy = FormatCount(stages.Busy(stage));
    return OnCore(stage) ? fmt::format("{} threads at a time, of {} that may use a core", busy,
                                       FormatCount(stages.on_cores))
                         : fmt::format("{} threads at a time, of its {}", busy, FormatCount(stages.threads));
  }
  // Cores that nobody uses, if known.
  std::optional<double> IdleCores() const {
    const auto own = view.CoresOfCommand();
    if (!own || view.cores() <= 0) return std::nullopt;
    return std::max(0.0, view.cores() - *own - view.CoresOfOthers().value_or(0));
  }
  bool CoresAreIdle() const { return IdleCores().value_or(0) >= kIdleCores; }
};

// Whether threads in a read are waiting for storage rather than, like all others, for a core. Threads that
// want a core show up among those that may use one; if these have little to do, or if a core is idle, it is
// the storage.
bool ReadsWaitForStorage(const Judged& judged) {
  const Stages& stages = judged.stages;
  if (stages.CoresBind()) return false;
  return stages.Core() < kPartOfFetch * stages.on_cores || judged.CoresAreIdle() || !judged.IdleCores() ||
         judged.view.Mean(Metric::kPsiIoSome).value_or(0) >= kDataWait.warning;
}

LoaderStage BindingStage(const Judged& judged) {
  const Stages& stages = judged.stages;
  LoaderStage most = kDecode;
  for (const LoaderStage stage : {kRead, kTransform, kUser, kCollate, kCopy}) {
    if (stage == kRead && !ReadsWaitForStorage(judged)) continue;
    if (stages.Busy(stage) > stages.Busy(most)) most = stage;
  }
  return most;
}

// The loader as the replay models it: a number of threads that each make whole batches. While the training
// waits for data, a batch costs the time until the next one on every thread that was not idle.
std::optional<Pipeline> StagedPipeline(const Judged& judged, double threads, double idle) {
  auto pipeline = TrainingPipeline(judged.view);
  if (!pipeline) return std::nullopt;
  const Stages& stages = judged.stages;
  const double step_ns = judged.view.lead().MeanStepNs();
  const double batch_ns = step_ns / pipeline->batches_per_step;
  pipeline->workers = std::max<int64_t>(1, std::llround(threads));
  pipeline->turn_ns = 0;  // its threads hand nothing over
  pipeline->fetch_ns = {std::max(0.05 * threads, threads - idle) * batch_ns};
  pipeline->fetch_cpu_ns = stages.Core() * batch_ns;
  if (const auto own = judged.view.CoresOfCommand()) {
    const auto ranks = static_cast<double>(std::max<size_t>(1, judged.view.RanksOnLeadsMachine()));
    pipeline->train_cpu_ns = std::max(0.0, *own / ranks - stages.Core()) * step_ns;
  }
  return pipeline;
}

// The gain if `less` of a stage's time is saved. Where threads queue for a core, only those on one count.
void PredictLess(Judged& judged, LoaderStage stage, double less, const std::string& method) {
  const Stages& stages = judged.stages;
  const bool those_on_cores = OnCore(stage) && stages.CoresBind();
  auto pipeline = those_on_cores ? StagedPipeline(judged, stages.on_cores, 0)
                                 : StagedPipeline(judged, stages.threads, stages.no_room);
  if (!pipeline) return;
  pipeline->fetch_ns[0] *= 1 - less * stages.Busy(stage) / (those_on_cores ? stages.Core() : stages.All());
  if (OnCore(stage)) pipeline->fetch_cpu_ns *= 1 - less * stages.Busy(stage) / stages.Core();
  // Threads beyond those that may use a core were only there to read.
  if (stage == kRead) pipeline->workers = std::max<int64_t>(1, std::llround(stages.on_cores));
  judged.finding.speedup = PredictSpeedup(judged.view.lead().MeanStepNs(), *pipeline);
  judged.finding.method = method;
}

void BlameRead(Judged& judged) {
  judged.finding.cause = "storage";
  judged.finding.title =
      fmt::format("{}: the loader waits for storage ({}).", judged.Waits(), judged.AtATime(kRead));
  judged.finding.fix = {
      "keep the data on a faster or nearer disk, or in memory: copy it to local storage before training; "
      "remote files stay in cache_directory=, what fits into memory in memory_cache_bytes=",
      "store samples in large shards, read from front to back: fullbore loader pack DIR OUT",
      "more threads will not help: the loader tries them by itself and keeps those that do"};
  PredictLess(judged, kRead, 1,
              "replay of the recorded steps with the time inside reads removed from every batch");
}

void BlameCores(Judged& judged, LoaderStage stage) {
  const Stages& stages = judged.stages;
  const std::string work = stage == kDecode ? "decoding" : "the transforms";
  const auto cores = static_cast<double>(judged.view.cores());
  if (judged.loader.threads.value_or(0) > 0 && judged.CoresAreIdle()) {
    judged.finding.cause = "too-few-threads";
    judged.finding.title =
        fmt::format("{}: {} sets the pace with threads={}, and {} cores are idle.", judged.Waits(), work,
                    *judged.loader.threads, FormatCount(*judged.IdleCores()));
    judged.finding.change = judged.Call("threads=0");
    judged.finding.fix = {judged.Call("threads=0") +
                          ": the loader takes as many threads as the training needs"};
    auto pipeline = StagedPipeline(judged, stages.threads, stages.no_room);
    if (!pipeline) return;
    pipeline->workers = std::max<int64_t>(pipeline->workers, std::llround(cores));
    judged.finding.speedup = PredictSpeedup(judged.view.lead().MeanStepNs(), *pipeline);
    judged.finding.method =
        fmt::format("replay of the recorded steps with one thread per core ({}), shared with the training",
                    FormatCount(cores));
    return;
  }
  judged.finding.cause = stage == kDecode ? "decode" : "transform";
  judged.finding.title =
      fmt::format("{}: {} sets the pace ({}{}).", judged.Waits(), work, judged.AtATime(stage),
                  judged.CoresAreIdle() ? "" : "; no core is left for more");
  judged.finding.fix = {judged.loader.threads.value_or(0) > 0
                            ? "give the run more CPU cores, and let the loader choose its threads: threads=0"
                            : "give the run more CPU cores: the loader uses as many as the training needs"};
  auto& fix = judged.finding.fix;
  if (stage == kDecode) {
    fix.push_back(
        "store the images closer to the size that is used, once and offline: a quarter of the pixels takes "
        "about a quarter of the decoding");
    fix.push_back(
        "scaled_decode=True (the default) decodes JPEGs that are twice as large as needed at a fraction of "
        "the cost; fast_dct=True gains a little more where its error does not matter");
  } else {
    fix.push_back(
        "crop before the other transforms, so that they see fewer pixels; leave out what the model does "
        "not need");
    fix.push_back("move colour changes to the device where that is not the narrow pipe");
  }
  PredictLess(judged, stage, 0.5, fmt::format("replay of the recorded steps with {} in half the time", work));
}

void BlameUser(Judged& judged) {
  const Stages& stages = judged.stages;
  judged.finding.cause = "user-stage";
  const int64_t processes = judged.loader.map_processes.value_or(0);
  const bool stand = processes == 0 && stages.off_core > kPartOfFetch * stages.Busy(kUser);
  judged.finding.title =
      fmt::format("{}: your own stage (map=) sets the pace ({}{}).", judged.Waits(), judged.AtATime(kUser),
                  stand ? fmt::format("; {} of them wait in it, for the interpreter or for what it calls",
                                      FormatCount(stages.off_core))
                        : "");
  auto& fix = judged.finding.fix;
  const auto most = static_cast<int64_t>(std::max(1.0, judged.view.cores()));
  const auto wanted = std::max<int64_t>(2, std::min<int64_t>(most, std::llround(stages.threads)));
  const std::string call = judged.Call(fmt::format("map_processes={}", processes == 0 ? wanted : most));
  const bool more = processes < most && (judged.CoresAreIdle() || !judged.IdleCores());
  if (more) judged.finding.change = call;
  if (more && processes > 0) fix.push_back(call + ": one process per core, as some cores are idle");
  if (more && processes == 0)
    fix.push_back(call +
                  ": Python code holds the interpreter lock: of several threads only one runs at a time, "
                  "while processes run in parallel");
  fix.push_back(
      "make it cheaper: whole-array NumPy calls instead of Python loops (which also release the interpreter "
      "lock), or one of the loader's own transforms");
  fix.push_back("do what is not random once, offline");
  if (!more && processes == 0)
    fix.push_back(call + " lets it run in parallel where cores are free; at present none is idle");
  // What processes gain depends on the pipes between them, which have not been measured.
  if (more) return;
  PredictLess(judged, kUser, 0.5, "replay of the recorded steps with your own stage in half the time");
}

void BlameCollate(Judged& judged) {
  judged.finding.cause = "collate";
  judged.finding.title = fmt::format("{}: writing samples into the batch sets the pace ({}).", judged.Waits(),
                                     judged.AtATime(kCollate));
  judged.finding.fix = {
      "make the batch smaller in bytes: dtype='float16' or 'bfloat16' halves it, 'uint8' (without Normalize) "
      "makes it a quarter; convert on the device",
      "leave out fields that the training does not use: fields=[...]"};
  PredictLess(judged, kCollate, 0.5,
              "replay of the recorded steps with half the bytes written into each batch");
}

void BlameCopy(Judged& judged) {
  judged.finding.cause = "copy";
  judged.finding.title = fmt::format("{}: the loader's copies to the device set the pace.", judged.Waits());
  judged.finding.fix = {"copy fewer bytes: dtype='uint8' and normalise on the device, or dtype='float16'",
                        "check that the device uses its full PCIe width (fullbore doctor) and is on the same "
                        "socket as the threads"};
  PredictLess(judged, kCopy, 0.5, "replay of the recorded steps with half the bytes copied");
}

void BlameBursts(Judged& judged) {
  judged.finding.cause = "bursts";
  judged.finding.title = fmt::format(
      "{}, although {} of the loader's {} threads are idle because there is no room for more finished "
      "batches: batches are used in bursts.",
      judged.Waits(), FormatCount(judged.stages.no_room), FormatCount(judged.stages.threads));
  judged.finding.change = judged.Call("prefetch_batches=16");
  judged.finding.fix = {judged.Call("prefetch_batches=16") +
                            ": more finished batches bridge the bursts, at the cost of their memory",
                        "use batches more evenly: gradient accumulation and validation take many at once"};
}

void BlameHandOver(Judged& judged) {
  judged.finding.cause = "hand-over";
  judged.finding.title = fmt::format(
      "{}, but only {} for batches that are not ready: the rest is Python work around finished batches.",
      judged.Waits(), FormatPercent(judged.stages.training_waits));
  judged.finding.fix = {"larger batches: work per batch is then spread over more samples",
                        "fewer fields: fields=[...]; texts and bytes become one Python object per row"};
}

void AddEvidence(Judged& judged) {
  const View& view = judged.view;
  const EvidenceBuilder evidence(judged.finding);
  const auto add = [&](const std::string& what, Metric metric, std::optional<LoaderStage> stage = {},
                       const char* unit = "") {
    const record::Labels labels = LabelsOf(view, judged.loader, stage);
    evidence.FromSeries(metric, labels, what, view.Mean(metric, labels), unit);
  };
  for (const LoaderStage stage : record::kLoaderStages) {
    const std::string where =
        stage == kUser ? "on a core in your own stage" : "in " + std::string(Name(stage));
    add("threads " + where, Metric::kLoaderBusy, stage);
  }
  add("threads waiting in your own stage", Metric::kLoaderBlockedUser);
  add("training waits inside the loader", Metric::kLoaderWait);
  add("threads waiting for a core", Metric::kLoaderBlockedCore);
  add("threads waiting for room", Metric::kLoaderBlockedRoom);
  add("threads of the loader", Metric::kLoaderThreads, kRead, "threads");
  add("of those, may use a core", Metric::kLoaderThreads, kCollate, "threads");
  add("finished batches waiting", Metric::kLoaderReadyBatches);
  add("room for finished batches", Metric::kLoaderReadyCapacity);
  add("read by the loader", Metric::kLoaderRead);
  evidence.FromMetric(Metric::kCpuUtilization, "CPU in use", view.Mean(Metric::kCpuUtilization));
  evidence.FromMetric(Metric::kProcessCpu, "cores that this command uses", view.CoresOfCommand());
  evidence.FromMetric(Metric::kGpuUtilization, "GPU utilisation", view.Mean(Metric::kGpuUtilization));
  evidence.FromMetric(Metric::kDiskRead, "read from disks", view.Sum(Metric::kDiskRead));
  evidence.FromMetric(Metric::kPsiIoSome, "some task stalled on I/O", view.Mean(Metric::kPsiIoSome));
}

void Explain(Judged& judged) {
  const Stages& stages = judged.stages;
  const LoaderStage binding = BindingStage(judged);
  // Less than half of the wait is spent in the loader, so its stages are not what the training waits for. But
  // threads in Python code hold the interpreter lock, which the training thread needs to take the batch.
  const bool holds_interpreter = binding == kUser && judged.loader.map_processes.value_or(0) == 0;
  if (stages.training_waits < judged.finding.share / 2) {
    return holds_interpreter ? BlameUser(judged) : BlameHandOver(judged);
  }
  if (stages.no_room > stages.threads / 2) return BlameBursts(judged);
  switch (binding) {
    case kRead:
      return BlameRead(judged);
    case kUser:
      return BlameUser(judged);
    case kCollate:
      return BlameCollate(judged);
    case kCopy:
      return BlameCopy(judged);
    default:
      return BlameCores(judged, binding);
  }
}

}  // namespace

void ExplainByStages(const View& view, const record::Loader& loader, Finding& finding, Diagnosis& diagnosis) {
  const auto stages = RecordedStages(view, loader);
  if (!stages) {
    finding.title = fmt::format("Training waits for data {} of the time.", FormatPercent(finding.share));
    finding.fix = {"record a longer run: the loader's stages are read once a second"};
    diagnosis.not_judged.push_back({"which stage of the loader binds",
                                    "its counters were not read often enough",
                                    "a few seconds of steady steps"});
    return;
  }
  Judged judged{view, loader, *stages, finding};
  AddEvidence(judged);
  Explain(judged);
}

}  // namespace fullbore::diagnose
