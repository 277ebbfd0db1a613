#include "explain/diagnose/lateness.h"

#include <algorithm>
#include <map>

#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/statistics.h"
#include "explain/diagnose/thresholds.h"

namespace fullbore::diagnose {

using record::RankInfo;
using record::Share;
using record::Step;

namespace {

int64_t ExposedWait(const Step& step) {
  return std::clamp<int64_t>(step.comm_wait_ns, 0, step.share_ns[Index(Share::kCommExposed)]);
}

// A collective phase that all ranks share, one step or a whole recording: how long each rank waited, and the
// part of that which cost time.
struct Meeting {
  std::vector<double> waits, costs_ns;
};

struct Latest {
  size_t rank = 0;
  double by_ns = 0;
};

Latest LatestOf(const Meeting& meeting) {
  Latest latest;
  latest.rank = static_cast<size_t>(std::min_element(meeting.waits.begin(), meeting.waits.end()) -
                                    meeting.waits.begin());
  std::vector<double> others = meeting.costs_ns;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(latest.rank));
  latest.by_ns = std::max(0.0, Median(others) - meeting.costs_ns[latest.rank]);
  return latest;
}

Meeting MeetingOf(const std::vector<const Step*>& steps, bool waits_known) {
  Meeting meeting;
  for (const Step* step : steps) {
    const int64_t exposed = step->share_ns[Index(Share::kCommExposed)];
    meeting.waits.push_back(static_cast<double>(waits_known ? step->comm_wait_ns : exposed));
    meeting.costs_ns.push_back(static_cast<double>(waits_known ? ExposedWait(*step) : exposed));
  }
  return meeting;
}

// With one step per rank, takes the sum over the recording: collectives outside the step count, too.
Lateness FromWholeRecordings(const std::vector<const RankView*>& ranks) {
  Meeting meeting;
  for (const RankView* rank : ranks) {
    const int64_t waited = *rank->info->comm_wait_ns;
    meeting.waits.push_back(static_cast<double>(waited));
    meeting.costs_ns.push_back(
        static_cast<double>(std::min(waited, rank->info->comm_exposed_ns.value_or(waited))));
  }
  const Latest latest = LatestOf(meeting);
  Lateness lateness;
  lateness.rank = ranks[latest.rank];
  std::vector<double> spans_ns;  // of the others, whose time it costs
  for (const RankView* rank : ranks) {
    if (rank != lateness.rank)
      spans_ns.push_back(static_cast<double>(rank->info->span_ns.value_or(rank->wall_ns)));
  }
  const double span_ns = Median(spans_ns);
  lateness.of_steps = 1;
  lateness.share = span_ns > 0 ? std::min(1.0, latest.by_ns / span_ns) : 0;
  lateness.steps = 1;
  lateness.one_step = true;
  if (const RankInfo& info = *lateness.rank->info; info.tables) {
    for (const record::CollectiveStats& stats : info.tables->collectives)
      lateness.collectives += stats.wait_ns ? stats.count : 0;
  }
  return lateness;
}

// One step cannot show that it is always the same rank, so it is never critical.
std::optional<Severity> SeverityOfLateness(const Lateness& late) {
  if (!late.one_step) return SeverityOf(late.share, kStraggler, late.steps);
  const auto severity = SeverityOf(late.share, kStraggler, late.collectives);
  return severity ? std::optional(Severity::kWarning) : std::nullopt;
}

std::optional<Straggler> Named(const Lateness& late) {
  if (!late.rank || late.of_steps < kSameRankLate) return std::nullopt;
  const auto severity = SeverityOfLateness(late);
  if (!severity) return std::nullopt;
  return Straggler{late, *severity};
}

// A group is there when its last rank is.
Meeting Grouped(Meeting meeting, const RankGroups& groups) {
  if (groups.empty()) return meeting;
  Meeting of_groups;
  for (const std::vector<size_t>& members : groups) {
    const size_t last =
        *std::ranges::min_element(members, {}, [&](size_t member) { return meeting.waits[member]; });
    of_groups.waits.push_back(meeting.waits[last]);
    of_groups.costs_ns.push_back(meeting.costs_ns[last]);
  }
  return of_groups;
}

double WaitRatio(const RankView& rank, bool waits_known) {
  return waits_known ? ExposedWaitRatio(rank) : rank.Ratio(Share::kCommExposed);
}

}  // namespace

bool WaitsAreKnown(const std::vector<const RankView*>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(),
                     [](const RankView* rank) { return rank->info->comm_wait_ns.has_value(); });
}

double ExposedWaitRatio(const RankView& rank) {
  int64_t waited_ns = 0, wall_ns = 0;
  for (const Step* step : rank.steady) {
    waited_ns += ExposedWait(*step);
    wall_ns += step->wall_ns;
  }
  return wall_ns > 0 ? static_cast<double>(waited_ns) / static_cast<double>(wall_ns) : 0;
}

Lateness FindLateness(const std::vector<const RankView*>& ranks, const RankGroups& groups) {
  const bool waits_known = WaitsAreKnown(ranks);
  std::map<int64_t, std::vector<const Step*>> by_index;
  for (const RankView* rank : ranks) {
    for (const Step* step : rank->steady) by_index[step->index].push_back(step);
  }
  if (waits_known && by_index.size() == 1 && groups.empty()) return FromWholeRecordings(ranks);
  const size_t parties = groups.empty() ? ranks.size() : groups.size();
  std::vector<int64_t> late_steps(parties);
  std::vector<double> late_ns(parties);
  double wall_ns = 0;
  int64_t steps = 0;
  for (const auto& [index, of_ranks] : by_index) {
    if (of_ranks.size() != ranks.size()) continue;
    const Latest latest = LatestOf(Grouped(MeetingOf(of_ranks, waits_known), groups));
    ++late_steps[latest.rank];
    late_ns[latest.rank] += latest.by_ns;
    wall_ns +=
        static_cast<double>(of_ranks[groups.empty() ? latest.rank : groups[latest.rank].front()]->wall_ns);
    ++steps;
  }
  Lateness lateness;
  if (steps == 0) return lateness;
  const auto most = static_cast<size_t>(std::max_element(late_ns.begin(), late_ns.end()) - late_ns.begin());
  lateness.rank = ranks[groups.empty() ? most : groups[most].front()];
  lateness.of_steps = static_cast<double>(late_steps[most]) / static_cast<double>(steps);
  lateness.share = wall_ns > 0 ? late_ns[most] / wall_ns : 0;
  lateness.steps = steps;
  return lateness;
}

std::optional<Straggler> FindSlowNode(const View& view, const std::vector<const RankView*>& ranks) {
  if (view.stage().nodes.size() < 2) return std::nullopt;
  std::map<int, std::vector<size_t>> of_nodes;
  for (size_t i = 0; i < ranks.size(); ++i) of_nodes[ranks[i]->info->node].push_back(i);
  RankGroups groups;
  for (auto& [node, members] : of_nodes) groups.push_back(std::move(members));
  if (groups.size() < 2) return std::nullopt;
  const auto slow = Named(FindLateness(ranks, groups));
  if (!slow) return std::nullopt;
  std::vector<double> on_it, elsewhere;
  for (const RankView* rank : ranks)
    (rank->info->node == slow->lateness.rank->info->node ? on_it : elsewhere)
        .push_back(WaitRatio(*rank, WaitsAreKnown(ranks)));
  // Half of what is waited for it: a rank that waits longer is not one of the late ones.
  if (Median(on_it) > Median(elsewhere) - slow->lateness.share / 2) return std::nullopt;
  return slow;
}

std::vector<const RankView*> RanksTogether(const View& view) {
  std::vector<const RankView*> ranks;
  for (const RankView& rank : view.ranks()) {
    if (rank.begin_ns < view.lead().end_ns && rank.end_ns > view.lead().begin_ns) ranks.push_back(&rank);
  }
  return ranks;
}

std::optional<Straggler> FindStraggler(const std::vector<const RankView*>& ranks) {
  return Named(FindLateness(ranks));
}

}  // namespace fullbore::diagnose
