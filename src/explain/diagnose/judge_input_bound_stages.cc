// The threads of fullbore.data carry a sample through all stages, one after the other, so the stage in which
// most of their time goes is the narrow one. Two things make it less simple. Only so many threads as have
// leave to use a core decode, transform and collate; the others may sit in a read meanwhile, and how long is
// no matter while they then queue for a core. And threads that wait for room among the finished batches,
// although the training waits, say that no stage is too slow on average, but that the work comes in bursts.
#include "explain/diagnose/judge_input_bound_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/replay.h"
#include "explain/diagnose/thresholds.h"
#include "record/loader_stage.h"

namespace fullbore::diagnose {

using record::LoaderStage;
using record::Metric;

namespace {

using enum LoaderStage;

bool OnCore(LoaderStage stage) { return stage == kDecode || stage == kTransform || stage == kCollate; }

// Means over the steady state, in threads.
struct Stages {
  std::array<double, record::kLoaderStages.size()> busy_of{};
  double threads = 0;         // there are
  double on_cores = 0;        // of them may use a core at a time
  double want_core = 0;       // wait for leave to
  double off_core = 0;        // of Busy(kUser): wait inside it
  double no_room = 0;         // wait for room among the finished batches
  double training_waits = 0;  // part of the time, by the loader's own clock

  double& Busy(LoaderStage stage) { return busy_of[Index(stage)]; }
  double Busy(LoaderStage stage) const { return busy_of[Index(stage)]; }
  double Core() const { return Busy(kDecode) + Busy(kTransform) + Busy(kCollate); }
  double All() const { return Core() + Busy(kRead) + Busy(kUser) + Busy(kCopy); }
  // Threads queue for a core: what is done on the cores binds, however long others sit in a read.
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

// What the causes have in common.
struct Judged {
  const View& view;
  const record::Loader& loader;
  Stages stages;
  Finding& finding;

  std::string Waits() const {
    return fmt::format("Training waits for data {} of the time", FormatPercent(finding.share));
  }
  // "ImageFolder(threads=0)": the change in the call that made the loader.
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
  // Cores that nobody uses; nothing where that is not known.
  std::optional<double> IdleCores() const {
    const auto own = view.CoresOfCommand();
    if (!own || view.cores() <= 0) return std::nullopt;
    return std::max(0.0, view.cores() - *own - view.CoresOfOthers().value_or(0));
  }
  bool CoresAreIdle() const { return IdleCores().value_or(0) >= kIdleCores; }
};

// Whether threads in a read wait for the storage, rather than for a core like all others. Those that want one
// are seen among the threads that may use a core; where these have little to do, or a core is idle, it is the
// storage.
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

// The loader as the replay knows one: so many threads, each of which makes whole batches. Where the training
// waits for them, a batch costs as much of their time as passes until the next one, but for those that stood
// idle.
std::optional<Pipeline> StagedPipeline(const Judged& judged, double threads, double idle) {
  auto pipeline = TrainingPipeline(judged.view);
  if (!pipeline) return std::nullopt;
  const Stages& stages = judged.stages;
  const double step_ns = judged.view.lead().MeanStepNs();
  const double batch_ns = step_ns / pipeline->batches_per_step;
  pipeline->workers = std::max<int64_t>(1, std::llround(threads));
  pipeline->fetch_ns = {std::max(0.05 * threads, threads - idle) * batch_ns};
  pipeline->fetch_cpu_ns = stages.Core() * batch_ns;
  if (const auto own = judged.view.CoresOfCommand()) {
    const auto ranks = static_cast<double>(std::max<size_t>(1, judged.view.ranks().size()));
    pipeline->train_cpu_ns = std::max(0.0, *own / ranks - stages.Core()) * step_ns;
  }
  return pipeline;
}

// The gain where a stage takes `less` of its time. Where threads queue for a core, only those on one count.
void PredictLess(Judged& judged, LoaderStage stage, double less, const std::string& method) {
  const Stages& stages = judged.stages;
  const bool those_on_cores = OnCore(stage) && stages.CoresBind();
  auto pipeline = those_on_cores ? StagedPipeline(judged, stages.on_cores, 0)
                                 : StagedPipeline(judged, stages.threads, stages.no_room);
  if (!pipeline) return;
  pipeline->fetch_ns[0] *= 1 - less * stages.Busy(stage) / (those_on_cores ? stages.Core() : stages.All());
  if (OnCore(stage)) pipeline->fetch_cpu_ns *= 1 - less * stages.Busy(stage) / stages.Core();
  // Threads beyond those that may use a core were there to read.
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
      "more threads are no cure: the loader tries them by itself, and keeps those that help"};
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
        fmt::format("replay of the recorded steps with a thread a core ({}), shared with the training",
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
        "store the images nearer to the size that is used, once and offline: a quarter of the pixels "
        "is about a quarter of the decoding");
    fix.push_back(
        "scaled_decode=True (the default) decodes JPEGs that are twice as large as needed at a part of the "
        "cost; fast_dct=True gains a little more where its error does not matter");
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
  if (more && processes > 0) fix.push_back(call + ": a process a core, some are idle");
  if (more && processes == 0)
    fix.push_back(
        call +
        ": Python code holds the interpreter, in threads only one of them runs at a time; processes "
        "run beside each other");
  fix.push_back(
      "make it cheaper: whole-array NumPy calls instead of Python loops (they also let go of the "
      "interpreter), or one of the loader's own transforms");
  fix.push_back("do what is not random once, offline");
  if (!more && processes == 0)
    fix.push_back(call +
                  " lets it run without the interpreter's lock, where cores are free; now none is idle");
  // What processes gain depends on the pipes between them, which nothing here has measured.
  if (more) return;
  PredictLess(judged, kUser, 0.5, "replay of the recorded steps with your own stage in half the time");
}

void BlameCollate(Judged& judged) {
  judged.finding.cause = "collate";
  judged.finding.title = fmt::format("{}: writing samples into the batch sets the pace ({} are at it).",
                                     judged.Waits(), judged.AtATime(kCollate));
  judged.finding.fix = {
      "make the batch smaller in bytes: dtype='float16' or 'bfloat16' halves it, 'uint8' (without Normalize) "
      "is a quarter; convert on the device",
      "leave out fields that the training does not use: fields=[...]"};
  PredictLess(judged, kCollate, 0.5,
              "replay of the recorded steps with half the bytes written into each batch");
}

void BlameCopy(Judged& judged) {
  judged.finding.cause = "copy";
  judged.finding.title = fmt::format("{}: the loader's copies to the device set the pace.", judged.Waits());
  judged.finding.fix = {"copy fewer bytes: dtype='uint8' and normalise on the device, or dtype='float16'",
                        "check that the device sits on its full PCIe width (fullbore doctor), and on the "
                        "same socket as the threads"};
  PredictLess(judged, kCopy, 0.5, "replay of the recorded steps with half the bytes copied");
}

void BlameBursts(Judged& judged) {
  judged.finding.cause = "bursts";
  judged.finding.title = fmt::format(
      "{}, although {} of the loader's {} threads stand idle for want of room: batches are used faster at "
      "times than on average.",
      judged.Waits(), FormatCount(judged.stages.no_room), FormatCount(judged.stages.threads));
  judged.finding.change = judged.Call("prefetch_batches=16");
  judged.finding.fix = {judged.Call("prefetch_batches=16") +
                            ": more finished batches bridge the bursts, at the price of "
                            "their memory",
                        "spread the use of batches: gradient accumulation and validation take many at once"};
}

void BlameHandOver(Judged& judged) {
  judged.finding.cause = "hand-over";
  judged.finding.title = fmt::format(
      "{}, but for batches that are not ready only {}: the rest is Python around finished batches.",
      judged.Waits(), FormatPercent(judged.stages.training_waits));
  judged.finding.fix = {"larger batches: what is done once a batch then counts for more samples",
                        "fewer fields: fields=[...]; texts and bytes become one Python object a row"};
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
  add("of them on cores at most", Metric::kLoaderThreads, kCollate, "threads");
  add("finished batches waiting", Metric::kLoaderReadyBatches);
  add("of so many at most", Metric::kLoaderReadyCapacity);
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
  // Less than half of the wait passes in the loader: its stages are not what the training waits for. But
  // threads in Python code hold the interpreter, and the training thread must have it back to take the batch.
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
                                    "some seconds of steady steps"});
    return;
  }
  Judged judged{view, loader, *stages, finding};
  AddEvidence(judged);
  Explain(judged);
}

}  // namespace fullbore::diagnose
