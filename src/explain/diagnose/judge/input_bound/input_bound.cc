// input-bound: the training thread waits inside the data loader's `next`. Which part of the loader limits it follows
// from what a fetch consists of: time blocked, time in collate, or a heavy tail (a slow sample). The rest is CPU work,
// where what matters is whether cores are free for more workers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "explain/diagnose/activity_shares.h"
#include "explain/diagnose/advice.h"
#include "explain/diagnose/device_replay.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/framework_words.h"
#include "explain/diagnose/judge/input_bound/blocked.h"
#include "explain/diagnose/judge/input_bound/collate.h"
#include "explain/diagnose/judge/input_bound/cpu.h"
#include "explain/diagnose/judge/input_bound/elsewhere.h"
#include "explain/diagnose/judge/input_bound/fetch.h"
#include "explain/diagnose/judge/input_bound/own.h"
#include "explain/diagnose/judge/input_bound/stages.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/lateness.h"
#include "explain/diagnose/library_options.h"
#include "explain/diagnose/recorded_pipeline.h"

namespace fullbore::diagnose {

using record::Loader;
using record::Metric;
using record::Share;
using replay::Pipeline;

namespace {

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
  for (const char* role : {"trainer", "loader"})
    evidence.FromSeries(Metric::kProcessIoRead, {{"role", role}},
                        fmt::format("read from disks by the {} processes", role),
                        input.view.Mean(Metric::kProcessIoRead, {{"role", role}}));
  evidence.FromMetric(Metric::kPsiIoSome, "some task stalled on I/O", input.view.Mean(Metric::kPsiIoSome));
  evidence.FromMetric(Metric::kCpuIowait, "CPU idle waiting for I/O", input.view.Mean(Metric::kCpuIowait));
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
  changed.unbroken = changed.unbroken || changed.threads > 1;  // the training need not stop for it
  input.finding.speedup = PredictSpeedup(input.rank.MeanStepNs(), changed);
  input.finding.method = "replay of the recorded steps with every sample as fast as a usual one";
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

// Of the wait, what passes outside of fetches where the training thread loads by itself: its sampler draws meanwhile, one
// batch after the other. Nothing where that may be another's: pages are pinned there, too.
double DrawOfEachBatch(const Input& input) {
  const Loader& loader = input.loader;
  const double wait_ns = loader.wait_ns.mean();
  if (loader.num_workers > 0 || loader.library != "" || loader.pin_memory) return 0;
  if (wait_ns <= 0 || input.parts.total <= 0) return 0;
  return std::clamp(1 - input.parts.total / wait_ns, 0.0, 1.0);
}

void Explain(Input& input) {
  const double draw_share = DrawShare(input.rank, input.loader);
  const double restart_share = EpochStartShare(input.rank, input.loader) - draw_share;
  const FetchParts& parts = input.parts;
  if (draw_share > input.finding.share / 2) return BlameSampler(input, draw_share);
  if (const double drawing = DrawOfEachBatch(input); drawing > kPartOfFetch)
    return BlameSamplerOfEachBatch(input, drawing);
  if (input.loader.num_workers > 0 && restart_share > input.finding.share / 2)
    return BlameRestarts(input, restart_share);
  // A tail also shows as blocked time or CPU time. It is the more specific cause, so it is checked first.
  if (parts.Part(parts.tail) >= kPartOfFetch) return BlameSlowSample(input);
  if (BlameSlices(input)) return;
  if (parts.Part(parts.collate) >= kPartOfFetch && !KeepsUp(input)) return BlameCollate(input);
  if (parts.Part(parts.blocked) >= kPartOfFetch) return BlameWaiting(input);
  BlameCpu(input);
}

// Ranks that load come late to collectives, each in another step: what the lead waits for them there. The ratio of the
// step that workers on all ranks would save beyond the lead's own wait; of a straggler its own finding tells.
double WaitForLoadersElsewhere(const View& view) {
  const auto ranks = RanksTogether(view);
  if (ranks.size() < 2 || !WaitsAreKnown(ranks) || FindStraggler(ranks)) return 0;
  const double saved = SavedBy(view.lead(), "workers") - view.lead().Ratio(Share::kDataWait);
  return std::clamp(saved, 0.0, ExposedWaitRatio(view.lead()));
}

// No fetch was recorded: we know how long training waits, but not why the loader is slow.
Finding FromWaitAlone(const View& view, Finding finding, double elsewhere, Diagnosis& diagnosis) {
  const RankView& rank = view.lead();
  const EvidenceBuilder evidence(finding);
  const bool single = view.Fact("loader_processes") == "single";
  finding.title =
      fmt::format("Training waits for data {} of the time{}", FormatPercent(finding.share),
                  single ? ": the training thread loads every batch itself (num_workers=0)." : ".");
  if (single) finding.cause = "no-workers";
  const Loader* loader = rank.TrainingLoader();
  const bool watched = loader != nullptr && loader->library == record::kWatched;
  if (watched) {
    finding.cause = "own-iterator";
    ReplaceFullStop(finding.title, fmt::format(": {} gives its batches too late.", loader->dataset));
  }
  if (elsewhere > 0) {
    ReplaceFullStop(finding.title, fmt::format(", {} of it in collectives, for ranks that still load.",
                                               FormatPercent(elsewhere)));
    evidence.FromReplay("waiting in collectives that ends when no rank waits for data", elsewhere, "ratio");
    if (elsewhere > ExposedWaitRatio(rank) / 2) finding.supersedes = {{"comm-bound", "uneven-ranks"}};
  }
  finding.fix = {
      single
          ? "load in worker processes: DataLoader(num_workers=...), as many as keep the device from waiting"
      : watched ? "prepare batches a few ahead of the training, in other threads or processes: tf.data's "
                  "prefetch(AUTOTUNE), grain's workers, DataLoader(num_workers=...), or a queue"
                : "raise the loader's num_workers as long as cores are free"};
  if (loader != nullptr && !watched) {
    if (LoaderAdvice advice = AdviceFor(view, *loader); !advice.fix.empty()) {
      finding.cause = advice.cause;
      finding.fix = std::move(advice.fix);
      finding.change = advice.change;
      if (!advice.why.empty()) ReplaceFullStop(finding.title, fmt::format(": {}.", advice.why));
    }
  }
  AdviseCheaperLoading(view, loader, finding);
  if (ReadsFromDisk(view, rank.Ratio(Share::kDataWait)).value_or(false))
    finding.fix.push_back("read from a faster or nearer data store");
  evidence.FromSteps(rank, "device idle while waiting for the loader",
                     rank.Ratio(Share::kDataWait) * rank.MeanStepNs() / 1e6, "ms per step");
  PointAtWorstStep(rank, Share::kDataWait, finding);
  if (Quote(rank, "workers",
            "the recorded steps run again with the wait hidden by workers, except for taking each batch from "
            "them",
            finding))
    finding.costs = replay::Cost::kMemory;
  diagnosis.not_judged.push_back(
      {"which part of the loader is slow", "no fetch of a DataLoader was recorded",
       watched ? "" : "fullbore run -- COMMAND: it looks into the loader's workers"});
  return finding;
}

// Without the wait for data nothing is left to gain by what only ends the wait, but for what its pauses cost a
// training on the host; another setting may change more than that. Samples of stacks do not tell the last per cent of
// a wait from nothing: they promise no multiples of ten. `besides`: of the step, what a cure of the wait removes of
// other things.
void BoundByTheWait(const View& view, double besides, Finding& finding) {
  constexpr double kMostFromSamples = 10;
  if (finding.method.empty()) return;
  double most = finding.speedup.high;
  if (finding.change.empty()) {
    const double rest = view.ComputesOnCpu() ? 1 - replay::kMostOfPauses : 1;
    most = std::min(most, 1 / (1 - std::min(finding.share + besides, kMostOfAStep)) / rest);
  }
  if (view.sampling()) {
    if (2 * finding.speedup.low > kMostFromSamples) return DropGain(finding);
    most = std::min(most, kMostFromSamples);
  }
  for (double* gain : {&finding.speedup.low, &finding.speedup.expected, &finding.speedup.high})
    *gain = std::min(*gain, most);
}

void SayWhatWouldNotHelp(const View& view, double share, Diagnosis& diagnosis) {
  const Loader* loader = view.lead().TrainingLoader();
  if (share >= kDataWait.warning || !loader) return;
  const std::string waits = fmt::format("training waits for data only {} of the time", FormatPercent(share));
  const char* more = loader->library == record::kFullboreData ? "more threads in the loader"
                     : loader->library == record::kWatched    ? "a faster loader"
                                                              : "more loader workers";
  diagnosis.would_not_help.push_back({more, waits});
  diagnosis.would_not_help.push_back({"a faster disk", waits});
}

}  // namespace

std::optional<Finding> JudgeInputBound(const View& view, Diagnosis& diagnosis) {
  const RankView& rank = view.lead();
  if (WaitForEnvironments(rank) > 0) return std::nullopt;  // the rollout of host-other
  const double elsewhere = WaitForLoadersElsewhere(view);
  const double share = rank.Ratio(Share::kDataWait) + elsewhere;
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
  if (auto made = FromElsewhere(view, finding, diagnosis)) return made;
  if (!loader) {
    if (auto own = FromOwnFeed(view, finding, diagnosis)) return own;
  }
  if (!staged && (!loader || !pipeline)) {
    return FromWaitAlone(view, std::move(finding), elsewhere, diagnosis);
  }
  double removes_besides = 0;
  if (staged) {
    ExplainByStages(view, *loader, finding, diagnosis);
  } else {
    Input input{view, rank, *loader, PartsOf(*loader), *pipeline, std::move(finding)};
    AddEvidence(input);
    AddMemoryEvidence(input);
    Explain(input);
    finding = std::move(input.finding);
    removes_besides = input.removes_besides;
  }
  BoundByTheWait(view, removes_besides, finding);
  if (const auto rule = DeviceAgainstCpu(view)) finding.fix.push_back(*rule);
  const std::string option = OptionOf(LibraryIn(rank, Share::kDataWait), "own-loader");
  if (!option.empty() && finding.change.find("num_workers") != std::string::npos)
    finding.fix.insert(finding.fix.begin(), option);  // what the user can write
  PointAtWorstStep(rank, Share::kDataWait, finding);
  if (loader->num_workers > 0) NameLinesOfFetches(*loader, share, finding);
  if (const Place made = PlaceOf(loader->where); !made.file.empty() && IsPlaceToEdit(made.file))
    finding.where.insert(finding.where.begin(), made);
  const auto stalled = view.Mean(Metric::kPsiIoSome);
  if (finding.cause != "storage" && stalled && *stalled < kDataWait.warning) {
    diagnosis.would_not_help.push_back(
        {"a faster disk", fmt::format("tasks stalled on I/O only {} of the time: the data comes from memory",
                                      FormatPercent(*stalled))});
  }
  return finding;
}

}  // namespace fullbore::diagnose
