// straggler: one rank arrives last, and the others wait for it.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "explain/diagnose/device_replay.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/lateness.h"
#include "explain/diagnose/nodes.h"
#include "explain/diagnose/statistics.h"

namespace fullbore::diagnose {

using record::Share;

namespace {

using Ranks = std::vector<const RankView*>;

constexpr size_t kRanksNamed = 8;  // more of them are quantiles

// The late one, or all of the late machine.
Ranks LateOf(const Ranks& ranks, const Lateness& late, bool node) {
  Ranks of;
  for (const RankView* rank : ranks) {
    if (node ? rank->info->node == late.rank->info->node : rank == late.rank) of.push_back(rank);
  }
  return of;
}

double PerStep(const Ranks& ranks, size_t share) {
  double sum = 0;
  for (const RankView* rank : ranks)
    sum += static_cast<double>(rank->share_ns[share]) / static_cast<double>(rank->steps);
  return sum / static_cast<double>(ranks.size());
}

// The share of the step by which those that are late exceed the mean of the others most, and by how much.
std::pair<Share, double> LargestExcess(const Ranks& late, const Ranks& others) {
  std::pair<Share, double> largest = {Share::kCompute, 0};
  for (size_t i = 0; i < record::kShareCount; ++i) {
    if (static_cast<Share>(i) == Share::kCommExposed) continue;
    const double excess = PerStep(late, i) - PerStep(others, i);
    if (excess > largest.second) largest = {static_cast<Share>(i), excess};
  }
  return largest;
}

std::string NameForPeople(Share share) {
  switch (share) {
    case Share::kDataWait:
      return "waits for data";
    case Share::kHostOther:
      return "does things other than training";
    case Share::kForward:
      return "runs the forward pass";
    case Share::kBackward:
      return "runs the backward pass";
    case Share::kOptimizer:
      return "runs the optimizer";
    case Share::kH2d:
    case Share::kCopyExposed:
      return "copies";
    case Share::kCompute:
      return "computes";
    case Share::kLaunch:
      return "waits for launches";
    case Share::kSync:
      return "idles behind synchronisations";
    case Share::kGap:
      return "idles between queued kernels";
    default:
      return fmt::format("is in {}", Name(share));
  }
}

std::string TitleOf(const std::string& who, const Lateness& late, Share share, double excess_ns) {
  std::string title =
      late.one_step
          ? fmt::format(
                "In the one step recorded, {} arrives last and holds up the others for {} of the time", who,
                FormatPercent(late.share))
          : fmt::format("{} arrives last in {} of the steps and holds up the others for {} of the time", who,
                        FormatPercent(late.of_steps), FormatPercent(late.share));
  if (title.starts_with("rank ")) title[0] = 'R';  // a machine's name stays as it is
  if (excess_ns > 0) {
    title += fmt::format(": it {} {} longer", NameForPeople(share),
                         FormatDuration(static_cast<int64_t>(excess_ns)));
  }
  return title + ".";
}

void AddEvidence(const Lateness& late, const Ranks& ranks, const EvidenceBuilder& evidence) {
  const bool waits_known = WaitsAreKnown(ranks);
  const auto waits = [&](const RankView& rank) {
    return waits_known ? ExposedWaitRatio(rank) : rank.Ratio(Share::kCommExposed);
  };
  if (ranks.size() > kRanksNamed) {
    std::vector<double> all;
    for (const RankView* rank : ranks) all.push_back(waits(*rank));
    evidence.FromSteps(*late.rank, fmt::format("rank {} waits for others", late.rank->info->rank),
                       waits(*late.rank), "ratio");
    evidence.FromSteps(*late.rank, fmt::format("the median of {} ranks", ranks.size()), Median(all), "ratio");
    evidence.FromSteps(*late.rank, "the rank that waits longest", *std::ranges::max_element(all), "ratio");
    return;
  }
  for (const RankView* rank : ranks) {
    evidence.FromSteps(*late.rank, fmt::format("rank {} waits for others", rank->info->rank), waits(*rank),
                       "ratio");
    if (late.one_step) {
      evidence.FromSteps(*late.rank,
                         fmt::format("rank {} waits inside collectives, whole trace", rank->info->rank),
                         static_cast<double>(*rank->info->comm_wait_ns) / 1e6, "ms");
    }
  }
}

// What a machine that is late has that the others have not. Where nothing differs, it may be its work that does.
void NameNode(const NodeSummary& node, Finding& finding) {
  if (node.differs.empty()) {
    finding.fix.front() = fmt::format(
        "look at {}: its input, its disk, its devices' clocks and errors; nothing that was recorded differs there",
        node.name);
    return;
  }
  finding.cause = "slow-node";
  std::string what;
  for (const Difference& difference : node.differs)
    what += fmt::format("{}{} {}, elsewhere {}", what.empty() ? "" : "; ", difference.what, difference.here,
                        difference.elsewhere);
  finding.fix.front() = fmt::format("look at {}: {}", node.name, what);
  finding.fix.push_back(fmt::format(
      "leave {0} out until it is mended (Slurm: --exclude={0}), and see whether the others wait less",
      node.name));
  ReplaceFullStop(finding.title,
                  fmt::format(". What differs there: {} {}, elsewhere {}.", node.differs[0].what,
                              node.differs[0].here, node.differs[0].elsewhere));
}

// By a rank that waits: the late one's own steps contain no wait that could go.
void Promise(const Lateness& late, const Ranks& others, Finding& finding) {
  const auto gain =
      others.empty() ? std::nullopt : GainOf(*others.front(), {replay::ChangeNamed("straggler")});
  if (gain) {
    finding.speedup = *gain;
    finding.method = fmt::format("the recorded steps of rank {} run again so that it waits for nobody",
                                 others.front()->info->rank);
    return;
  }
  finding.speedup = RemovalOf(late.share, 0.8);
  finding.method = "the late rank made as fast as the median of the others; at the low end, 80 % of that";
}

Finding FindingOf(const View& view, const Ranks& ranks, const Straggler& straggler, const NodeSummary* node) {
  const Lateness& late = straggler.lateness;
  const Ranks late_ones = LateOf(ranks, late, node != nullptr);
  Ranks others;
  std::ranges::copy_if(ranks, std::back_inserter(others),
                       [&](const RankView* rank) { return !std::ranges::count(late_ones, rank); });
  const auto [share, excess_ns] = LargestExcess(late_ones, others);
  const std::vector<record::Node>& nodes = view.stage().nodes;
  std::string who = fmt::format("rank {}", late.rank->info->rank);
  if (node != nullptr)
    who = fmt::format("{} (rank{} {})", node->name, node->ranks.size() > 1 ? "s" : "", RangesOf(node->ranks));
  else if (!nodes.empty())
    who += " on " + nodes[static_cast<size_t>(late.rank->info->node)].name;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  // Where waits are unknown, its cost and the transfer cannot be told apart.
  if (!WaitsAreKnown(ranks)) finding.supersedes = {{"comm-bound", ""}};
  finding.severity = straggler.severity;
  finding.share = late.share;
  finding.title = TitleOf(who, late, share, excess_ns);
  finding.fix = {
      fmt::format("look at rank {}: its input, its neighbours on the machine, its device's clocks and errors",
                  late.rank->info->rank),
      "give every rank the same work: samples of similar length, equal shards, logging and checkpoints "
      "spread or in the background"};
  if (late.one_step) finding.fix.push_back("trace twenty steps or more: is it the same rank in all of them?");
  if (node != nullptr) NameNode(*node, finding);
  for (const record::HotLine& line : late.rank->info->hot_lines) {
    if (line.share == share && !line.file.empty() && finding.where.size() < 3)
      finding.where.push_back({line.file, line.line, line.text, 0});
  }
  if (!late.one_step) {
    evidence.FromSteps(*late.rank, node != nullptr ? "a rank of it is last" : "the same rank is last",
                       late.of_steps, "ratio");
  }
  evidence.FromSteps(*late.rank, "steps compared", static_cast<double>(late.steps), "count");
  if (excess_ns > 0) {
    evidence.FromSteps(*late.rank, fmt::format("extra time in {}", Name(share)), excess_ns / 1e6, "ms");
  }
  AddEvidence(late, ranks, evidence);
  Promise(late, others, finding);
  return finding;
}

}  // namespace

std::optional<Finding> JudgeStraggler(const View& view, Diagnosis& diagnosis) {
  const Ranks ranks = RanksTogether(view);
  if (ranks.size() < 2) {
    const bool has_collectives = view.lead().info->comm_ns.value_or(0) > 0;
    diagnosis.not_judged.push_back({has_collectives ? "stragglers" : "collectives, stragglers", "one rank",
                                    has_collectives ? "the traces of all ranks" : "a run of several ranks"});
    return std::nullopt;
  }
  if (const auto slow = FindSlowNode(view, ranks)) {
    const auto node = static_cast<size_t>(slow->lateness.rank->info->node);
    // The only rank of a machine is late by its work as likely as by the machine, unless that differs.
    const bool of_machine = node < diagnosis.nodes.size() && (diagnosis.nodes[node].ranks.size() > 1 ||
                                                              !diagnosis.nodes[node].differs.empty());
    if (of_machine) return FindingOf(view, ranks, *slow, &diagnosis.nodes[node]);
  }
  const auto straggler = FindStraggler(ranks);
  if (!straggler) return std::nullopt;
  return FindingOf(view, ranks, *straggler, nullptr);
}

}  // namespace fullbore::diagnose
