#include "timeline/device/ranks.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/text.h"
#include "timeline/device/meetings.h"

namespace fullbore::timeline {
namespace {

int64_t Median(std::vector<int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of a send or receive. What only has the name of a kernel that does both may be an all-to-all.
bool BetweenStages(const Arrivals& rank, const Arrival& arrival) {
  const Role role = rank.RoleOf(arrival);
  return role == Role::kSend || role == Role::kReceive ||
         (role == Role::kExchange && !GroupOf(rank.kinds[arrival.kind]).empty());
}

using Pair = std::pair<uint32_t, uint32_t>;

// By how much the clock of the second of two ranks that meet lies behind the first one's. Collectives tell; where there
// is none, sends and receives, as far as they end together.
std::map<Pair, int64_t> ClockDifferences(const std::vector<Arrivals>& ranks, const Matching& matching) {
  struct Together {
    const Meetings* meetings;
    size_t with;  // the first party and this one
  };
  std::map<Pair, std::vector<Together>> pairs;
  for (const Meetings& meetings : matching.all) {
    for (size_t k = 1; k < meetings.parties.size(); ++k)
      pairs[std::minmax(meetings.parties[0].rank, meetings.parties[k].rank)].push_back({&meetings, k});
  }
  std::map<Pair, int64_t> behind_ns;
  for (const auto& [pair, met] : pairs) {  // one after the other: those of all take as much as the arrivals
    std::vector<int64_t> collectives, stages;
    for (const auto& [meetings, with] : met) {
      const Party *first = &meetings->parties[0], *other = &meetings->parties[with];
      if (first->rank > other->rank) std::swap(first, other);
      AddDifferences(ranks, *first, *other, meetings->of_stages ? &stages : &collectives);
    }
    if (!collectives.empty())
      behind_ns[pair] = Median(std::move(collectives));
    else if (SpreadOf(stages) <= kClocksAgreeNs)
      behind_ns[pair] = Median(std::move(stages));
  }
  return behind_ns;
}

// By how much each rank's clock differs from that of a rank that it meets, and so on to the first one's.
std::vector<int64_t> ClockShifts(const std::vector<Arrivals>& ranks, const Matching& matching) {
  const std::map<Pair, int64_t> behind_ns = ClockDifferences(ranks, matching);
  std::vector<int64_t> shifts(ranks.size(), 0);
  std::vector<bool> known(ranks.size(), false);
  const auto spread_from = [&](size_t start) {
    known[start] = true;
    for (std::vector<size_t> at = {start}; !at.empty();) {
      std::vector<size_t> next;
      for (const size_t r : at) {
        for (const auto& [who, ns] : behind_ns) {
          if (who.first != r && who.second != r) continue;
          const size_t other = who.first == r ? who.second : who.first;
          if (known[other]) continue;
          const int64_t shift = shifts[r] + (who.first == r ? ns : -ns);
          shifts[other] = std::llabs(shift) >= kClocksAgreeNs ? shift : 0;
          known[other] = true;
          next.push_back(other);
        }
      }
      at = std::move(next);
    }
  };
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (!known[r]) spread_from(r);
  }
  return shifts;
}

// Who comes to a meeting waits for the last one to come.
void TakeWaits(const std::vector<Arrivals>& ranks, const Matching& matching, RankComparison* comparison) {
  uint32_t number = 0;
  for (const Meetings& meetings : matching.all) {
    for (size_t i = 0; i < meetings.size(); ++i) {
      ++number;
      const auto begin_ns = [&](const Party& party) {
        return ArrivalOf(ranks, party, i).begin_ns + comparison->ranks[party.rank].shift_ns;
      };
      int64_t last_ns = INT64_MIN;
      for (const Party& party : meetings.parties) last_ns = std::max(last_ns, begin_ns(party));
      for (const Party& party : meetings.parties) {
        const Arrival& arrival = ArrivalOf(ranks, party, i);
        RankWaits& waits = comparison->ranks[party.rank];
        const uint32_t at = party.arrivals[i];
        waits.wait_ns[at] =
            std::clamp<int64_t>(last_ns - begin_ns(party), 0, arrival.end_ns - arrival.begin_ns);
        waits.meeting[at] = number;
        waits.of_stages[at] = meetings.of_stages;
      }
    }
  }
}

}  // namespace

RankComparison CompareRanks(const std::vector<Arrivals>& ranks) {
  RankComparison comparison;
  for (const Arrivals& rank : ranks) {
    RankWaits waits;
    waits.wait_ns.assign(rank.list.size(), -1);
    waits.meeting.assign(rank.list.size(), 0);
    for (const Arrival& arrival : rank.list) waits.of_stages.push_back(BetweenStages(rank, arrival));
    waits.together = ranks.size() > 1;
    comparison.ranks.push_back(std::move(waits));
  }
  if (ranks.size() < 2) return comparison;
  const Matching matching = Match(ranks);
  if (matching.all.empty()) {
    comparison.notes.push_back("the ranks have no collectives in common: their clocks cannot be compared");
    return comparison;
  }
  const std::vector<int64_t> shifts = ClockShifts(ranks, matching);
  for (size_t r = 0; r < ranks.size(); ++r) {
    comparison.ranks[r].shift_ns = shifts[r];
    if (shifts[r] == 0) continue;
    comparison.notes.push_back("file " + std::to_string(r) + ": its clock differs by " +
                               FormatDuration(std::llabs(shifts[r])) + "; aligned at the ends of " +
                               std::to_string(matching.meetings()) + " collectives");
  }
  TakeWaits(ranks, matching, &comparison);
  if (matching.unmatched > 0) {
    comparison.notes.push_back(std::to_string(matching.unmatched) +
                               " collectives do not appear on every rank: the wait inside them is unknown");
  }
  return comparison;
}

namespace {

// The graph holds the first collectives of the trace, in the same order.
void ApplyWaits(const RankWaits& waits, record::StepGraph* graph) {
  size_t arrival = 0;
  for (record::StepGraph::Node& node : graph->nodes) {
    if (node.work != record::Work::kDevice || node.lane != Lane::kComm) continue;
    if (arrival == waits.wait_ns.size()) return;
    node.meeting = waits.meeting[arrival];
    node.wait_ns = std::max<int64_t>(0, waits.wait_ns[arrival++]);
  }
}

}  // namespace

// Where the partner of a send or receive is not known, what it takes beyond the shortest of its kind is waiting.
static std::vector<int64_t> WaitsForStages(const Arrivals& arrivals, const RankWaits& waits) {
  std::vector<int64_t> shortest(arrivals.kinds.size(), INT64_MAX), wait_ns = waits.wait_ns;
  for (const Arrival& arrival : arrivals.list)
    shortest[arrival.kind] = std::min(shortest[arrival.kind], arrival.end_ns - arrival.begin_ns);
  for (size_t i = 0; i < wait_ns.size(); ++i) {
    const Arrival& arrival = arrivals.list[i];
    if (!waits.of_stages[i])
      wait_ns[i] = -1;
    else if (wait_ns[i] < 0)
      wait_ns[i] = arrival.end_ns - arrival.begin_ns - shortest[arrival.kind];
  }
  return wait_ns;
}

static void ApplyWaitsInCollectives(const Arrivals& arrivals, const RankWaits& waits,
                                    record::RankInfo* info) {
  int64_t total = 0;
  for (size_t i = 0; i < arrivals.list.size(); ++i)
    total += waits.of_stages[i] ? 0 : std::max<int64_t>(0, waits.wait_ns[i]);
  info->comm_wait_ns = total;
  for (record::Step& step : info->steps) step.comm_wait_ns = 0;
}

void ApplyWaits(const Arrivals& arrivals, const RankWaits& waits, record::RankInfo* info) {
  std::map<std::string, int64_t> by_kind;
  bool known = false, stages = false;
  for (size_t i = 0; i < arrivals.list.size(); ++i) {
    stages = stages || waits.of_stages[i];
    if (waits.wait_ns[i] < 0) continue;
    known = true;
    by_kind[arrivals.kinds[arrivals.list[i].kind]] += waits.wait_ns[i];
  }
  if (!known && !stages) return;
  // Exposed communication must not be taken for waiting for a late rank where stages exchange what they compute.
  const bool collectives_known = known || waits.together;
  if (collectives_known) ApplyWaitsInCollectives(arrivals, waits, info);
  if (known && info->graph) ApplyWaits(waits, &*info->graph);
  const std::vector<int64_t> for_stages = WaitsForStages(arrivals, waits);
  for (record::Step& step : info->steps) {
    const auto first = std::partition_point(
        arrivals.list.begin(), arrivals.list.end(),
        [&](const Arrival& arrival) { return arrival.begin_ns < step.end_ns - step.wall_ns; });
    for (auto it = first; it != arrivals.list.end() && it->begin_ns < step.end_ns; ++it) {
      const auto i = static_cast<size_t>(it - arrivals.list.begin());
      if (for_stages[i] < 0) {
        if (collectives_known) step.comm_wait_ns += std::max<int64_t>(0, waits.wait_ns[i]);
        continue;
      }
      const int64_t exposed_ns = arrivals.transfers[it->transfer].exposed_ns;
      info->noticed.bubble_ns += std::min(for_stages[i], exposed_ns);
      info->noticed.transfer_ns += std::max<int64_t>(0, exposed_ns - for_stages[i]);
    }
  }
  if (!info->tables) return;
  for (record::CollectiveStats& stats : info->tables->collectives) {
    const auto found = by_kind.find(stats.kind + "/" + stats.group);
    if (found != by_kind.end()) stats.wait_ns = found->second;
  }
}

static void ShiftTimes(int64_t by_ns, record::StepTimeline* line) {
  line->begin_ns += by_ns;
  line->end_ns += by_ns;
  for (record::ShareSpan& span : line->shares) {
    span.begin_ns += by_ns;
    span.end_ns += by_ns;
  }
  for (record::StepTimeline::Track& track : line->tracks) {
    for (record::StepTimeline::Piece& piece : track.pieces) {
      piece.begin_ns += by_ns;
      piece.end_ns += by_ns;
    }
  }
}

void ShiftTimes(int64_t by_ns, record::RankInfo* info) {
  for (record::Step& step : info->steps) step.end_ns += by_ns;
  for (record::StepWindow& window : info->windows) {
    window.begin_ns += by_ns;
    window.end_ns += by_ns;
  }
  for (record::Noticed::Stretch& bare : info->noticed.bare) {
    bare.begin_ns += by_ns;
    bare.end_ns += by_ns;
  }
  if (info->graph) info->graph->begin_ns += by_ns;
  if (info->timeline) ShiftTimes(by_ns, &*info->timeline);
}

}  // namespace fullbore::timeline
