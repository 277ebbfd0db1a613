#include "explain/diagnose/judge/input_bound/own.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/advice.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/framework_words.h"
#include "explain/diagnose/judge/input_bound/feed.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/library_options.h"
#include "explain/diagnose/places.h"
#include "explain/diagnose/shared_cores.h"

namespace fullbore::diagnose {

using record::Activity;
using record::HotLine;
using record::Share;

namespace {

// The samples that saw the training thread being fed.
struct Feed {
  int64_t waiting = 0;    // for another thread or process
  int64_t preparing = 0;  // in the loop's own iterator
  int64_t blocked = 0;    // of that: asleep, or waiting for files or the network, so that no core is in use
  int64_t beside = 0;     // not fed: what else the loop did

  int64_t all() const { return waiting + preparing; }
};

Feed FeedOf(const RankView& rank) {
  Feed feed;
  for (const HotLine& line : rank.info->hot_lines) {
    if (line.share == Share::kHostOther && line.part == record::HostOther::kUnnamed)
      feed.beside += line.samples;
    if (line.share != Share::kDataWait) continue;
    const bool waits = IsWaitForOthers(line.activity);
    if (waits) feed.waiting += line.samples;
    if (waits || !line.in_iterator) continue;
    feed.preparing += line.samples;
    if (line.activity == Activity::kSleep || line.activity == Activity::kNetwork ||
        line.activity == Activity::kFile)
      feed.blocked += line.samples;
  }
  return feed;
}

// The pipeline if so much of the step is waiting. A producer for which the training waits is busy all the time.
std::optional<replay::Pipeline> PipelineAt(const View& view, const Feed& feed, double share) {
  const double step_ns = view.lead().MeanStepNs();
  const bool waits = feed.waiting >= feed.preparing;
  const double fetch_ns = waits ? step_ns : share * step_ns;
  return PipelineOfFeed(view, waits ? Feeder::kProducer : Feeder::kTrainingThread, fetch_ns,
                        feed.blocked * 2 < feed.all() ? fetch_ns : 0, /*waited=*/1, share);
}

// How many more producers: one where they compute; where they wait for files or the network, as many as end the training's
// wait.
constexpr int64_t kMostProducers = 8;
int64_t MoreProducers(const replay::Pipeline& pipeline) {
  if (pipeline.workers == 0 || 2 * pipeline.fetch_cpu_ns > pipeline.fetch_ns.front()) return 1;
  return std::max<int64_t>(1, replay::FewestWorkers(pipeline, kMostProducers) - pipeline.workers);
}

struct Gain {
  int64_t more = 1;
  Speedup speedup;
};

// With more producers, or with the loop's own work in a worker. Its share is sampled: the range covers that, too.
std::optional<Gain> GainOfMore(const View& view, const Feed& feed) {
  const Sampled share = ShareOfFeed(view.lead(), feed.all(), feed.beside);
  const auto as_it_is = PipelineAt(view, feed, std::min(share.ratio, 0.99));
  if (!as_it_is) return std::nullopt;
  const int64_t more = MoreProducers(*as_it_is);
  const auto gain = [&](double ratio) -> std::optional<Speedup> {
    const auto pipeline = PipelineAt(view, feed, std::min(ratio, 0.99));
    if (!pipeline) return std::nullopt;
    return PredictSpeedup(view.lead().MeanStepNs(), WithWorkers(*pipeline, pipeline->workers + more));
  };
  const auto low = gain(share.low), expected = gain(share.ratio), high = gain(share.high);
  if (!low || !expected || !high) return std::nullopt;
  return Gain{more,
              {expected->expected, std::min(low->low, expected->low), std::max(high->high, expected->high)}};
}

void Predict(const View& view, const Feed& feed, bool waits, Finding& finding) {
  if (!view.CoresOfCommand() || view.cores() <= 0) return;
  const auto more = GainOfMore(view, feed);
  SharedCores shared;
  if (const auto pipeline = PipelineAt(view, feed, view.lead().Ratio(Share::kDataWait)))
    shared = ShareCores(*pipeline, view.lead().MeanStepNs());
  const bool sharing =
      shared.gain && IsWorthwhile(*shared.gain) && (!more || shared.gain->low > more->speedup.low);
  if (sharing) {
    finding.change = waits
                         ? fmt::format("OMP_NUM_THREADS={} and {} producers", shared.threads, shared.workers)
                         : ChangeOf(shared);
    finding.fix.insert(finding.fix.begin(), finding.change + ": " + kWhySharing);
  }
  if (sharing || (more && IsWorthwhile(more->speedup))) {
    const Sampled share = ShareOfFeed(view.lead(), feed.all(), feed.beside);
    finding.speedup = sharing ? *shared.gain : more->speedup;
    finding.costs = replay::Cost::kMemory;
    finding.method = fmt::format(
        "replay of the recorded steps with {}, on {} cores shared with the training; the share of the wait, "
        "{} to {} of the step, is told from {} samples",
        !waits           ? "a worker that prepares the batches"
        : more->more > 1 ? fmt::format("{} more producers, which mostly wait", more->more)
                         : "one more producer",
        FormatCount(view.cores()), FormatPercent(share.low), FormatPercent(share.high),
        FormatCount(static_cast<double>(feed.all() + feed.beside)));
    return;
  }
  finding.fix.insert(
      finding.fix.begin(),
      "no core is idle, so that more threads or processes gain nothing: prepare the data once, "
      "before the training, or make its preparation cheaper");
}

// Passes without gradients in the loop may be a policy's, whose actions an environment in another process answers.
constexpr double kMayAct = 0.01;

}  // namespace

std::optional<Finding> FromOwnFeed(const View& view, Finding finding, Diagnosis& diagnosis) {
  const RankView& rank = view.lead();
  const Feed feed = FeedOf(rank);
  if (feed.all() == 0) return std::nullopt;
  const EvidenceBuilder evidence(finding);
  const bool waits = feed.waiting >= feed.preparing;
  finding.cause = waits ? "own-loader" : "own-iterator";
  std::string at;
  if (!finding.where.empty()) at = " at " + NameOf(finding.where.front());
  const double steps_per_s = 1e9 / rank.MeanStepNs();
  const double could_take = steps_per_s / std::max(0.01, 1 - finding.share);
  const std::string waiting =
      fmt::format("Training waits for data {} of the time", FormatPercent(finding.share));
  const bool may_act = waits && rank.Ratio(record::HostOther::kWithoutGradients) >= kMayAct;
  if (may_act) {
    finding.title = fmt::format("{}{}, for what another thread or process sends.", waiting, at);
  } else if (waits && view.sampling()) {
    finding.title = fmt::format("{}{}: your own loader delivers too late.", waiting, at);
  } else if (waits) {
    finding.title = fmt::format("{}{}: your own loader delivers for {} steps/s, the training could take {}.",
                                waiting, at, FormatCount(steps_per_s), FormatCount(could_take));
  } else {
    finding.title = fmt::format(
        "{}: the training thread prepares every batch itself, in the loop's own iterator{}.", waiting, at);
    finding.fix = {fmt::format("prepare batches beside the training, in {}", BesideTheTraining(view))};
  }
  if (waits) {
    finding.fix = {
        "more producers: threads where they wait for files or the network, processes where they compute "
        "(threads share Python's lock with the training)",
        fmt::format("or let {} take the place of thread and queue", BesideTheTraining(view))};
  }
  finding.fix.push_back("images, tar shards, TFRecord and HDF5: fullbore.data reads them in native threads");
  if (const std::string option = OptionOf(LibraryIn(rank, Share::kDataWait), finding.cause); !option.empty())
    finding.fix.insert(finding.fix.begin(), option);
  evidence.FromHook("the training waits", finding.share * rank.MeanStepNs() / 1e6, "ms per step");
  evidence.FromHook("samples of the training thread that saw it wait", static_cast<double>(feed.all()),
                    "count");
  evidence.FromHook("steps that the data allows", steps_per_s, "steps/s");
  evidence.FromHook("steps that the training could take", could_take, "steps/s");
  if (const auto used = view.CoresOfCommand())
    evidence.FromMachine("cores in use by the run", *used, "count");
  if (may_act) {
    finding.fix.insert(finding.fix.begin(),
                       "where that is an environment's answer to an action, it is this program's own work");
  } else {
    Predict(view, feed, waits, finding);
  }
  PointAtWorstStep(rank, Share::kDataWait, finding);
  diagnosis.not_judged.push_back({"which part of the script's own loader is slow",
                                  "only the waits for it can be seen",
                                  "a DataLoader, whose fetches are timed"});
  return finding;
}

}  // namespace fullbore::diagnose
