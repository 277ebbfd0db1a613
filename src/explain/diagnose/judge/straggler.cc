// straggler: one rank arrives last, and the others wait for it.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/device_replay.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/lateness.h"

namespace fullbore::diagnose {

using record::Share;

namespace {

// The share of its step by which the late rank exceeds the mean of the others most, and by how much.
std::pair<Share, double> LargestExcess(const std::vector<const RankView*>& ranks, const RankView* late) {
  std::pair<Share, double> largest = {Share::kCompute, 0};
  for (size_t i = 0; i < record::kShareCount; ++i) {
    if (static_cast<Share>(i) == Share::kCommExposed) continue;
    double others = 0;
    for (const RankView* rank : ranks) {
      if (rank != late) others += static_cast<double>(rank->share_ns[i]) / static_cast<double>(rank->steps);
    }
    others /= static_cast<double>(ranks.size() - 1);
    const double excess = static_cast<double>(late->share_ns[i]) / static_cast<double>(late->steps) - others;
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

std::string TitleOf(const Lateness& late, Share share, double excess_ns) {
  const int rank = late.rank->info->rank;
  std::string title =
      late.one_step
          ? fmt::format(
                "In the one step recorded, rank {} arrives last and holds up the others for {} of the time",
                rank, FormatPercent(late.share))
          : fmt::format("Rank {} arrives last in {} of the steps and holds up the others for {} of the time",
                        rank, FormatPercent(late.of_steps), FormatPercent(late.share));
  if (excess_ns > 0) {
    title += fmt::format(": it {} {} longer", NameForPeople(share),
                         FormatDuration(static_cast<int64_t>(excess_ns)));
  }
  return title + ".";
}

void AddEvidence(const Lateness& late, const std::vector<const RankView*>& ranks,
                 const EvidenceBuilder& evidence) {
  const bool waits_known = WaitsAreKnown(ranks);
  for (const RankView* rank : ranks) {
    evidence.FromSteps(*late.rank, fmt::format("rank {} waits for others", rank->info->rank),
                       waits_known ? ExposedWaitRatio(*rank) : rank->Ratio(Share::kCommExposed), "ratio");
    if (late.one_step) {
      evidence.FromSteps(*late.rank,
                         fmt::format("rank {} waits inside collectives, whole trace", rank->info->rank),
                         static_cast<double>(*rank->info->comm_wait_ns) / 1e6, "ms");
    }
  }
}

// By a rank that waits: the late one's own steps contain no wait that could go.
void Promise(const Lateness& late, const std::vector<const RankView*>& ranks, Finding& finding) {
  const auto waiting = std::ranges::find_if(ranks, [&](const RankView* rank) { return rank != late.rank; });
  const auto gain =
      waiting == ranks.end() ? std::nullopt : GainOf(**waiting, {replay::ChangeNamed("straggler")});
  if (gain) {
    finding.speedup = *gain;
    finding.method = fmt::format("the recorded steps of rank {} run again so that it waits for nobody",
                                 (*waiting)->info->rank);
    return;
  }
  finding.speedup = RemovalOf(late.share, 0.8);
  finding.method = "the late rank made as fast as the median of the others; at the low end, 80 % of that";
}

}  // namespace

std::optional<Finding> JudgeStraggler(const View& view, Diagnosis& diagnosis) {
  const auto ranks = RanksTogether(view);
  if (ranks.size() < 2) {
    const bool has_collectives = view.lead().info->comm_ns.value_or(0) > 0;
    diagnosis.not_judged.push_back({has_collectives ? "stragglers" : "collectives, stragglers", "one rank",
                                    has_collectives ? "the traces of all ranks" : "a run of several ranks"});
    return std::nullopt;
  }
  const auto straggler = FindStraggler(ranks);
  if (!straggler) return std::nullopt;
  const Lateness& late = straggler->lateness;
  const auto [share, excess_ns] = LargestExcess(ranks, late.rank);
  Finding finding;
  const EvidenceBuilder evidence(finding);
  // Where waits are unknown, its cost and the transfer cannot be told apart.
  if (!WaitsAreKnown(ranks)) finding.supersedes = {{"comm-bound", ""}};
  finding.severity = straggler->severity;
  finding.share = late.share;
  finding.title = TitleOf(late, share, excess_ns);
  finding.fix = {
      fmt::format("look at rank {}: its input, its neighbours on the machine, its device's clocks and errors",
                  late.rank->info->rank),
      "give every rank the same work: samples of similar length, equal shards, logging and checkpoints "
      "spread or in the background"};
  if (late.one_step) finding.fix.push_back("trace twenty steps or more: is it the same rank in all of them?");
  for (const record::HotLine& line : late.rank->info->hot_lines) {
    if (line.share == share && !line.file.empty() && finding.where.size() < 3)
      finding.where.push_back({line.file, line.line, line.text, 0});
  }
  if (!late.one_step) evidence.FromSteps(*late.rank, "the same rank is last", late.of_steps, "ratio");
  evidence.FromSteps(*late.rank, "steps compared", static_cast<double>(late.steps), "count");
  if (excess_ns > 0) {
    evidence.FromSteps(*late.rank, fmt::format("extra time in {}", Name(share)), excess_ns / 1e6, "ms");
  }
  AddEvidence(late, ranks, evidence);
  Promise(late, ranks, finding);
  return finding;
}

}  // namespace fullbore::diagnose
