// straggler, comm-bound and uneven-last-batch: what several ranks do to each other.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "diagnose/judge.h"
#include "diagnose/statistics.h"

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

struct Lateness {
  const RankView* rank = nullptr;
  double of_steps = 0;  // in how many it was the last
  double share = 0;     // of the others' step that it costs
  int64_t steps = 0;
};

// The last rank to arrive is the one that waits least for the others; it is late by what the others wait
// more.
Lateness FindLateness(const std::vector<const RankView*>& ranks) {
  std::map<int64_t, std::vector<const Step*>> by_index;
  for (const RankView* rank : ranks) {
    for (const Step* step : rank->steady) by_index[step->index].push_back(step);
  }
  std::vector<int64_t> late_steps(ranks.size());
  std::vector<double> late_ns(ranks.size());
  double wall_ns = 0;
  int64_t steps = 0;
  for (const auto& [index, of_ranks] : by_index) {
    if (of_ranks.size() != ranks.size()) continue;
    std::vector<double> waits;
    for (const Step* step : of_ranks)
      waits.push_back(static_cast<double>(step->share_ns[Index(Share::kCommExposed)]));
    const auto last = static_cast<size_t>(std::min_element(waits.begin(), waits.end()) - waits.begin());
    const double own = waits[last];
    waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(last));
    ++late_steps[last];
    late_ns[last] += Median(waits) - own;
    wall_ns += static_cast<double>(of_ranks[last]->wall_ns);
    ++steps;
  }
  Lateness lateness;
  if (steps == 0) return lateness;
  const auto most = static_cast<size_t>(std::max_element(late_ns.begin(), late_ns.end()) - late_ns.begin());
  lateness.rank = ranks[most];
  lateness.of_steps = static_cast<double>(late_steps[most]) / static_cast<double>(steps);
  lateness.share = wall_ns > 0 ? late_ns[most] / wall_ns : 0;
  lateness.steps = steps;
  return lateness;
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
      return "spends copying to the device";
    default:
      return fmt::format("spends in {}", Name(share));
  }
}

bool JudgeStraggler(const View& view, const std::vector<const RankView*>& ranks, Diagnosis& diagnosis) {
  const Lateness late = FindLateness(ranks);
  if (!late.rank || late.of_steps < kSameRankLate) return false;
  const auto severity = SeverityOf(late.share, kStraggler, late.steps);
  if (!severity) return false;
  const auto [share, excess_ns] = LargestExcess(ranks, late.rank);
  Finding finding;
  finding.id = "straggler";
  finding.severity = *severity;
  finding.share = late.share;
  finding.title = fmt::format(
      "Rank {} is the last in {} of the steps and holds up the others for {} of the time: it {} {} longer.",
      late.rank->info->rank, FormatPercent(late.of_steps), FormatPercent(late.share), NameForPeople(share),
      FormatDuration(static_cast<int64_t>(excess_ns)));
  finding.fix = {
      fmt::format("look at rank {}: its input, its neighbours on the machine, its device's clocks and errors",
                  late.rank->info->rank),
      "give every rank the same work: samples of like length, equal shards, logging and checkpoints spread "
      "or in the background"};
  if (!late.rank->info->hot_lines.empty()) {
    for (const record::HotLine& line : late.rank->info->hot_lines) {
      if (line.share == share && finding.where.size() < 3)
        finding.where.push_back({line.file, line.line, line.text, 0});
    }
  }
  finding.evidence.push_back({"the same rank is last", late.of_steps, "ratio", "hook", "", {}, {}});
  finding.evidence.push_back(
      {fmt::format("its step is longer in {} by", Name(share)), excess_ns / 1e6, "ms", "hook", "", {}, {}});
  for (const RankView* rank : ranks) {
    finding.evidence.push_back({fmt::format("rank {} waits for others", rank->info->rank),
                                rank->Ratio(Share::kCommExposed),
                                "ratio",
                                "hook",
                                "",
                                {},
                                {}});
  }
  finding.speedup = RemovalOf(late.share, 0.8);
  finding.method = "the late rank made as fast as the median of the others; at the low end, 80 % of that";
  diagnosis.findings.push_back(std::move(finding));
  (void)view;
  return true;
}

void JudgeComm(const View& view, const std::vector<const RankView*>& ranks, Diagnosis& diagnosis) {
  double share = 0;
  for (const RankView* rank : ranks)
    share += rank->Ratio(Share::kCommExposed) / static_cast<double>(ranks.size());
  const auto severity = SeverityOf(share, kCommExposed, Observations(view.lead()));
  if (!severity) return;
  Finding finding;
  finding.id = "comm-bound";
  finding.severity = *severity;
  finding.share = share;
  finding.title = fmt::format("Collectives take {} of the time that no computation hides{}.",
                              FormatPercent(share), ranks.size() > 1 ? ", on all ranks alike" : "");
  finding.fix = {"synchronise less often: gradient accumulation under model.no_sync()",
                 "let communication overlap the backward pass: DDP's bucket_cap_mb, gradient_as_bucket_view, "
                 "static_graph",
                 "send less: bf16 compression hooks (torch.distributed.algorithms.ddp_comm_hooks), changes "
                 "the mathematics slightly",
                 "check the topology: NVLink or the right network interface (NCCL_DEBUG=INFO), ranks of a "
                 "node side by side"};
  const record::RankInfo& info = *view.lead().info;
  if (info.comm_ns && *info.comm_ns > 0 && info.comm_overlapped_ns) {
    finding.evidence.push_back(
        {"communication that overlaps compute",
         static_cast<double>(*info.comm_overlapped_ns) / static_cast<double>(*info.comm_ns),
         "ratio",
         "trace",
         "",
         {},
         {}});
  }
  finding.evidence.push_back({"exposed communication, mean over ranks", share, "ratio", "hook", "", {}, {}});
  finding.evidence.push_back({"ranks", static_cast<double>(ranks.size()), "count", "hook", "", {}, {}});
  PointAtWorstStep(view.lead(), Share::kCommExposed, finding);
  finding.speedup = RemovalOf(share, 0.3);
  finding.method = "exposed communication hidden; at the low end, 30 % of it";
  diagnosis.findings.push_back(std::move(finding));
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
      "with batch normalisation a batch of one sample gives statistics that are not numbers"};
  finding.evidence.push_back(
      {"steps with uneven batches", static_cast<double>(uneven), "count", "hook", "", {}, {}});
  diagnosis.findings.push_back(std::move(finding));
}

}  // namespace

void JudgeRanks(const View& view, Diagnosis& diagnosis) {
  const auto ranks = Together(view);
  if (ranks.size() < 2) {
    const bool has_collectives = view.lead().info->comm_ns.value_or(0) > 0;
    if (has_collectives) JudgeComm(view, ranks, diagnosis);
    diagnosis.not_judged.push_back({has_collectives ? "stragglers" : "collectives, stragglers", "one rank",
                                    has_collectives ? "the traces of all ranks" : "a run of several ranks"});
    return;
  }
  if (!JudgeStraggler(view, ranks, diagnosis)) JudgeComm(view, ranks, diagnosis);
  JudgeLastBatch(ranks, diagnosis);
}

}  // namespace fullbore::diagnose
