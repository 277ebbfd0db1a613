#include "explain/diagnose/judge_input_bound_own.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "explain/diagnose/activity_shares.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge.h"
#include "explain/diagnose/library_options.h"
#include "explain/diagnose/recorded_pipeline.h"

namespace fullbore::diagnose {

using record::Activity;
using record::HotLine;
using record::Share;

namespace {

// Handing batches over between processes takes a part of what is won: at least half of the gain remains.
constexpr double kMinOfGain = 0.5;

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
    const bool waits = line.activity == Activity::kQueue || line.activity == Activity::kLock ||
                       line.activity == Activity::kFuture;
    if (waits) feed.waiting += line.samples;
    if (waits || !line.in_iterator) continue;
    feed.preparing += line.samples;
    if (line.activity == Activity::kSleep || line.activity == Activity::kNetwork ||
        line.activity == Activity::kFile)
      feed.blocked += line.samples;
  }
  return feed;
}

// The share of the step, with the uncertainty of the samples that told it from other work in the loop.
Sampled ShareOf(const RankView& rank, const Feed& feed) {
  const double both = rank.Ratio(Share::kDataWait) + rank.Ratio(record::HostOther::kUnnamed);
  const Sampled of_both = SampledRatio(feed.all(), feed.all() + feed.beside);
  const double share = rank.Ratio(Share::kDataWait);
  return {share, std::min(share, both * of_both.low), std::max(share, both * of_both.high)};
}

// How much faster the step becomes once `producers` share what one did in `busy` of the step.
double Gain(double share, double busy, double producers) {
  return 1 / std::max({1 - share, busy / producers, 0.01});
}

void Predict(const View& view, const Feed& feed, bool waits, Finding& finding) {
  const Sampled share = ShareOf(view.lead(), feed);
  // A producer for which the training waits is busy all the time; a second one halves its time. Work that
  // the training thread did itself takes its share of the step in one worker.
  const double producers = waits ? 2 : 1;
  const auto gain = [&](double ratio) { return Gain(ratio, waits ? 1 : ratio, producers); };
  double expected = gain(share.ratio), low = 1 + (gain(share.low) - 1) * kMinOfGain;
  double high = 1 / (1 - std::min(share.high, 0.99));
  const auto used = view.CoresOfCommand();
  const bool needs_cores = feed.blocked * 2 < feed.all();
  if (needs_cores && used && *used > 0 && view.cores() > 0) {
    const double free = view.cores() - view.CoresOfOthers().value_or(0);
    expected = std::min(expected, free * replay::kCoresReached / *used);
    low = std::min(low, 1 + (expected - 1) * kMinOfGain);
    high = std::min(high, view.cores() / *used);
  }
  if (expected < kWorthwhileGain) {
    finding.fix.insert(
        finding.fix.begin(),
        "no core is idle, so that more threads or processes gain nothing: prepare the data once, "
        "before the training, or make its preparation cheaper");
    return;
  }
  if (!used) low = 1;
  finding.speedup = {expected, std::max(1.0, low), std::max(expected, high)};
  finding.method = fmt::format(
      "the wait shortened by {}, as far as cores are idle; at most, all of it removed; its share, {} to {} "
      "of "
      "the step, is told from {} samples",
      waits ? "a second producer" : "one worker process", FormatPercent(share.low), FormatPercent(share.high),
      FormatCount(static_cast<double>(feed.all() + feed.beside)));
}

}  // namespace

std::optional<Finding> FromOwnFeed(const View& view, Finding finding, Diagnosis& diagnosis) {
  const RankView& rank = view.lead();
  const Feed feed = FeedOf(rank);
  if (feed.all() == 0) return std::nullopt;
  const EvidenceBuilder evidence(finding);
  const bool waits = feed.waiting >= feed.preparing;
  finding.cause = waits ? "own-loader" : "own-iterator";
  std::string at;
  if (!finding.where.empty()) {
    const Place& place = finding.where.front();
    at = fmt::format(" at {}:{}", place.file.substr(place.file.rfind('/') + 1), place.line);
  }
  const double steps_per_s = 1e9 / rank.MeanStepNs();
  const double could_take = steps_per_s / std::max(0.01, 1 - finding.share);
  const std::string waiting =
      fmt::format("Training waits for data {} of the time", FormatPercent(finding.share));
  if (waits) {
    finding.title = fmt::format("{}{}: your own loader delivers for {} steps/s, the training could take {}.",
                                waiting, at, FormatCount(steps_per_s), FormatCount(could_take));
    finding.fix = {
        "more producers: threads where they wait for files or the network, processes where they compute "
        "(threads share Python's lock with the training)",
        "or let a Dataset behind DataLoader(num_workers=...) take the place of thread and queue"};
  } else {
    finding.title = fmt::format(
        "{}: the training thread prepares every batch itself, in the loop's own iterator{}.", waiting, at);
    finding.fix = {
        "prepare batches in a Dataset (or an IterableDataset) behind DataLoader(num_workers=...), beside the "
        "training"};
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
  Predict(view, feed, waits, finding);
  PointAtWorstStep(rank, Share::kDataWait, finding);
  diagnosis.not_judged.push_back({"which part of the script's own loader is slow",
                                  "only the waits for it can be seen",
                                  "a DataLoader, whose fetches are timed"});
  return finding;
}

}  // namespace fullbore::diagnose
