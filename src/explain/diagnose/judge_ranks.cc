// straggler and uneven-last-batch (and comm-bound, in judge_comm.cc): what several ranks do to each other.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "explain/diagnose/judge.h"
#include "explain/diagnose/lateness.h"

namespace fullbore::diagnose {

using record::Share;
using record::Step;

namespace {

// Ranks that trained together: their steady states overlap in time. Trainings one after the other are no
// ranks.
std::vector<const RankView*> Together(const View& view) {
  std::vector<const RankView*> ranks;
  for (const RankView& rank : view.ranks()) {
    if (rank.begin_ns < view.lead().end_ns && rank.end_ns > view.lead().begin_ns) ranks.push_back(&rank);
  }
  return ranks;
}

// The share of its step in which the late rank differs most from the mean of the others.
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
      return "does other things than training";
    case Share::kForward:
      return "spends in the forward pass";
    case Share::kBackward:
      return "spends in the backward pass";
    case Share::kOptimizer:
      return "spends in the optimizer";
    case Share::kH2d:
    case Share::kCopyExposed:
      return "spends copying";
    case Share::kCompute:
      return "computes";
    case Share::kLaunch:
      return "waits for launches";
    case Share::kSync:
      return "idles behind synchronisations";
    case Share::kGap:
      return "idles between queued kernels";
    default:
      return fmt::format("spends in {}", Name(share));
  }
}

// One step cannot show that it is always the same rank: never critical.
std::optional<Severity> SeverityOfLateness(const Lateness& late) {
  if (!late.one_step) return SeverityOf(late.share, kStraggler, late.steps);
  const auto severity = SeverityOf(late.share, kStraggler, late.collectives);
  return severity ? std::optional(Severity::kWarning) : std::nullopt;
}

std::string TitleOf(const Lateness& late, Share share, double excess_ns) {
  const int rank = late.rank->info->rank;
  std::string title =
      late.one_step
          ? fmt::format(
                "In the one step recorded rank {} arrives last and holds up the others for {} of the time",
                rank, FormatPercent(late.share))
          : fmt::format("Rank {} is the last in {} of the steps and holds up the others for {} of the time",
                        rank, FormatPercent(late.of_steps), FormatPercent(late.share));
  if (excess_ns > 0) {
    title += fmt::format(": it {} {} longer", NameForPeople(share),
                         FormatDuration(static_cast<int64_t>(excess_ns)));
  }
  return title + ".";
}

void AddEvidence(const Lateness& late, const std::vector<const RankView*>& ranks, Finding& finding) {
  const bool waits_known = WaitsAreKnown(ranks);
  const std::string source = late.rank->info->device_activity ? "trace" : "hook";
  const auto add = [&](const std::string& what, double value, const char* unit) {
    finding.evidence.push_back({what, value, unit, source, "", {}, {}});
  };
  for (const RankView* rank : ranks) {
    add(fmt::format("rank {} waits for others", rank->info->rank),
        waits_known ? ExposedWaitRatio(*rank) : rank->Ratio(Share::kCommExposed), "ratio");
    if (late.one_step) {
      add(fmt::format("rank {} waits inside collectives, whole trace", rank->info->rank),
          static_cast<double>(*rank->info->comm_wait_ns) / 1e6, "ms");
    }
  }
}

bool JudgeStraggler(const std::vector<const RankView*>& ranks, Diagnosis& diagnosis) {
  const Lateness late = FindLateness(ranks);
  if (!late.rank || late.of_steps < kSameRankLate) return false;
  const auto severity = SeverityOfLateness(late);
  if (!severity) return false;
  const auto [share, excess_ns] = LargestExcess(ranks, late.rank);
  Finding finding;
  finding.id = "straggler";
  finding.severity = *severity;
  finding.share = late.share;
  finding.title = TitleOf(late, share, excess_ns);
  finding.fix = {
      fmt::format("look at rank {}: its input, its neighbours on the machine, its device's clocks and errors",
                  late.rank->info->rank),
      "give every rank the same work: samples of like length, equal shards, logging and checkpoints spread "
      "or in the background"};
  if (late.one_step)
    finding.fix.push_back("trace twenty steps and more: is it the same rank in all of them?");
  for (const record::HotLine& line : late.rank->info->hot_lines) {
    if (line.share == share && finding.where.size() < 3)
      finding.where.push_back({line.file, line.line, line.text, 0});
  }
  const std::string source = late.rank->info->device_activity ? "trace" : "hook";
  if (!late.one_step)
    finding.evidence.push_back({"the same rank is last", late.of_steps, "ratio", source, "", {}, {}});
  finding.evidence.push_back(
      {"steps compared", static_cast<double>(late.steps), "count", source, "", {}, {}});
  if (excess_ns > 0) {
    finding.evidence.push_back(
        {fmt::format("its step is longer in {} by", Name(share)), excess_ns / 1e6, "ms", source, "", {}, {}});
  }
  AddEvidence(late, ranks, finding);
  finding.speedup = RemovalOf(late.share, 0.8);
  finding.method = "the late rank made as fast as the median of the others; at the low end, 80 % of that";
  diagnosis.findings.push_back(std::move(finding));
  return true;
}

// The last batch of an epoch is smaller on some ranks: they wait, or have none at all.
void JudgeLastBatch(const std::vector<const RankView*>& ranks, Diagnosis& diagnosis) {
  std::map<int64_t, std::vector<const Step*>> by_index;
  for (const RankView* rank : ranks) {
    for (const Step* step : rank->steady) by_index[step->index].push_back(step);
  }
  int64_t uneven = 0, least = 0, most = 0;
  for (const auto& [index, steps] : by_index) {
    if (steps.size() != ranks.size()) continue;
    const auto [low, high] = std::minmax_element(steps.begin(), steps.end(),
                                                 [](auto* a, auto* b) { return a->samples < b->samples; });
    if ((*low)->samples == (*high)->samples || (*low)->samples == 0) continue;
    if (uneven++ == 0) least = (*low)->samples, most = (*high)->samples;
  }
  if (uneven == 0) return;
  Finding finding;
  finding.id = "uneven-last-batch";
  finding.severity = Severity::kWarning;
  finding.title = fmt::format("In {} step{} the ranks had batches of different size ({} and {} samples).",
                              uneven, uneven == 1 ? "" : "s", least, most);
  finding.fix = {
      "drop_last=True in the loader and the sampler, or let DistributedSampler pad by repeating (its "
      "default)",
      "with batch normalisation a batch of very few samples has noisy statistics, and one value a "
      "channel ends the training with an error"};
  finding.evidence.push_back(
      {"steps with uneven batches", static_cast<double>(uneven), "count", "hook", "", {}, {}});
  diagnosis.findings.push_back(std::move(finding));
}

}  // namespace

void JudgeRanks(const View& view, Diagnosis& diagnosis) {
  const auto ranks = Together(view);
  if (ranks.size() < 2) {
    const bool has_collectives = view.lead().info->comm_ns.value_or(0) > 0;
    if (has_collectives) JudgeComm(view, ranks, /*straggler=*/false, diagnosis);
    diagnosis.not_judged.push_back({has_collectives ? "stragglers" : "collectives, stragglers", "one rank",
                                    has_collectives ? "the traces of all ranks" : "a run of several ranks"});
    return;
  }
  const bool straggler = JudgeStraggler(ranks, diagnosis);
  // Without known waits a straggler's cost and the transfer cannot be told apart.
  if (!straggler || WaitsAreKnown(ranks)) JudgeComm(view, ranks, straggler, diagnosis);
  JudgeLastBatch(ranks, diagnosis);
}

}  // namespace fullbore::diagnose
