// comm-bound: collectives that no computation hides, split into waiting for other ranks and transfer where
// the recordings of several ranks can be compared.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/comm_words.h"
#include "explain/diagnose/device_replay.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/lateness.h"
#include "explain/diagnose/pipeline_bubble.h"
#include "record/collective.h"

namespace fullbore::diagnose {

using record::CollectiveStats;
using record::Share;

namespace {

constexpr size_t kMaxCollectives = 4;  // listed one by one: more would be a table, not evidence

struct Exposed {
  double all = 0;               // of the step, mean over ranks
  std::optional<double> waits;  // the part of it until the last rank arrived
  double transfer() const { return std::max(0.0, all - waits.value_or(0)); }
};

Exposed ExposedOf(const std::vector<const RankView*>& ranks) {
  Exposed exposed;
  const auto count = static_cast<double>(ranks.size());
  const bool known = WaitsAreKnown(ranks) && ranks.size() > 1;
  double waits = 0;
  for (const RankView* rank : ranks) {
    exposed.all += rank->Ratio(Share::kCommExposed) / count;
    waits += ExposedWaitRatio(*rank) / count;
  }
  if (known) exposed.waits = waits;
  return exposed;
}

void AddCollectives(const record::RankInfo& info, const EvidenceBuilder& evidence) {
  if (!info.tables) return;
  std::vector<const CollectiveStats*> by_exposed;
  for (const CollectiveStats& stats : info.tables->collectives) by_exposed.push_back(&stats);
  std::stable_sort(by_exposed.begin(), by_exposed.end(),
                   [](const auto* a, const auto* b) { return a->exposed_ns > b->exposed_ns; });
  if (by_exposed.size() > kMaxCollectives) by_exposed.resize(kMaxCollectives);
  const auto add = [&](const std::string& what, double value, const char* unit) {
    evidence.FromTrace(what, value, unit);
  };
  for (const CollectiveStats* stats : by_exposed) {
    std::string name = stats->kind;
    if (!stats->group.empty()) name += " in group " + stats->group;
    if (stats->group_size) name += fmt::format(" of {} ranks", *stats->group_size);
    std::string calls = fmt::format("{} call{}", FormatCount(static_cast<double>(stats->count)),
                                    stats->count == 1 ? "" : "s");
    if (stats->bytes) calls += ", " + FormatBytes(static_cast<double>(*stats->bytes));
    add(fmt::format("{}: exposed, {}", name, calls), static_cast<double>(stats->exposed_ns) / 1e6, "ms");
    if (const auto bandwidth = record::AlgorithmBandwidth(*stats))
      add(name + ": algorithm bandwidth", *bandwidth, "bytes/s");
    if (const auto bandwidth = record::BusBandwidth(*stats))
      add(name + ": bus bandwidth", *bandwidth, "bytes/s");
  }
}

std::string TitleOf(const Exposed& exposed, size_t ranks) {
  if (!exposed.waits) {
    return fmt::format("Collectives that no computation hides take {} of the time{}.",
                       FormatPercent(exposed.all), ranks > 1 ? ", on all ranks alike" : "");
  }
  return fmt::format(
      "Collectives that no computation hides take {} of the time: {} waiting for the last rank to arrive, {} "
      "transfer.",
      FormatPercent(exposed.all), FormatPercent(*exposed.waits), FormatPercent(exposed.transfer()));
}

std::vector<std::string> FixOf(Exchange exchange, const Program& program, bool waiting) {
  std::vector<std::string> fix = FixesOf(exchange, program);
  if (waiting) {
    fix.insert(fix.begin(),
               "give the ranks equal work in every step (samples of similar length, equal shards): it is not "
               "always the same rank, but in each step one is late");
  }
  return fix;
}

// Gradient accumulation that exchanges the gradients of each micro-batch: what is left is one exchange a step, of the
// same sum. Ranks that are late wait for each other at that one.
void AdviseOneExchange(const View& view, const EarlyExchanges& early, Exchange exchange, Finding& finding) {
  // Two ranks of linear layers on two cores: 1.50 to 1.92 times as fast, where removing all of the exposed part gives
  // 1.54 (bench/accuracy/reports.py ddpaccum). What the CPU copies and adds up inside the backward pass goes, too.
  constexpr double kLeast = 0.6, kMostInsideBackward = 0.3;
  finding.cause = "each-micro-batch";
  ReplaceFullStop(finding.title,
                  fmt::format(", and {} of the exchanges are of gradients that more is added to.",
                              FormatPercent(early.part)));
  const std::string fix = ToExchangeOnce(early, ProgramOf(*view.lead().info));
  if (exchange == Exchange::kGradients)
    finding.fix.front() = fix;
  else
    finding.fix.insert(finding.fix.begin(), fix);
  const double removed = finding.share * early.part * early.reducing;
  finding.speedup = RemovalOf(removed, kLeast);
  if (view.ComputesOnCpu()) {
    const double inside = kMostInsideBackward * view.lead().Ratio(Share::kBackward) * early.part;
    finding.speedup.high = RemovalOf(removed + inside).high;
  }
  finding.method = fmt::format("{} of the exchanges left out; at the low end, {} of what they take",
                               FormatPercent(early.part), FormatPercent(kLeast));
}

}  // namespace

std::optional<Finding> JudgeCommBound(const View& view, Diagnosis& /*diagnosis*/) {
  const auto ranks = RanksTogether(view);
  const bool of_devices = WaitsForItsOtherDevices(view.lead());
  if (ranks.size() < 2 && view.lead().info->comm_ns.value_or(0) == 0 && !of_devices) return std::nullopt;
  const bool straggler = ranks.size() > 1 && FindStraggler(ranks);
  const Exposed exposed = ExposedOf(ranks);
  // What the straggler costs is a finding of its own.
  const double share = straggler ? exposed.transfer() : exposed.all;
  const auto severity = SeverityOf(share, kCommExposed, Observations(view.lead()));
  if (!severity) return std::nullopt;
  const bool waiting = !straggler && exposed.waits.value_or(0) > exposed.transfer();
  const record::RankInfo& info = *view.lead().info;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  if (waiting) finding.cause = "uneven-ranks";
  finding.severity = *severity;
  finding.share = share;
  if (of_devices) return OfItsDevices(view.lead(), std::move(finding));
  if (const auto bubble = BubbleOf(ranks); bubble.waiting > exposed.all / 2)
    return OfThePipeline(bubble, view, std::move(finding));
  finding.title = TitleOf(exposed, ranks.size());
  const Exchange exchange = ExchangeOf(info);
  finding.fix = FixOf(exchange, ProgramOf(info), waiting);
  if (info.comm_ns && *info.comm_ns > 0 && info.comm_overlapped_ns) {
    evidence.FromTrace("communication that overlaps compute",
                       static_cast<double>(*info.comm_overlapped_ns) / static_cast<double>(*info.comm_ns),
                       "ratio");
  }
  evidence.FromSteps(view.lead(), "exposed communication, mean over ranks", exposed.all, "ratio");
  if (exposed.waits) {
    evidence.FromSteps(view.lead(), "of that, waiting for the last rank", *exposed.waits, "ratio");
  }
  evidence.FromSteps(view.lead(), "ranks", static_cast<double>(ranks.size()), "count");
  AddCollectives(info, evidence);
  PointAtWorstStep(view.lead(), Share::kCommExposed, finding);
  const bool gradients = exchange == Exchange::kGradients;
  const bool of_gradients = gradients || exchange == Exchange::kSharded;
  if (const auto early = EarlyExchangesOf(info); early && of_gradients && !waiting) {
    AdviseOneExchange(view, *early, exchange, finding);
    return finding;
  }
  const bool advised = waiting     ? AdviseBest(view.lead(), {"straggler"}, finding)
                       : gradients ? AdviseBest(view.lead(), {"overlap", "comm"}, finding)
                                   : false;
  if (advised) return finding;
  if (ReplayableGraph(view.lead()) != nullptr) return finding;
  finding.speedup = RemovalOf(share, 0.3);
  finding.method = straggler ? "exposed transfer hidden; at the low end, 30 % of it"
                             : "exposed communication hidden; at the low end, 30 % of it";
  return finding;
}

}  // namespace fullbore::diagnose
