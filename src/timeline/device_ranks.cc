#include "timeline/device_ranks.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>

#include "base/text.h"
#include "timeline/device_tables.h"

namespace fullbore::timeline {
namespace {

// Clocks of one machine agree to within a few us, those of machines with NTP to about a
// millisecond; a difference below this is ignored, because the end of a collective itself differs
// by tens of microseconds between ranks.
constexpr int64_t kClocksAgreeNs = 200'000;

int64_t Median(std::vector<int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// For each kind, its arrivals in order: the n-th of one rank matches the n-th of the others,
// if all have the same number.
using ByKind = std::map<std::string, std::vector<size_t>>;

ByKind Sequences(const Arrivals& arrivals) {
  ByKind sequences;
  for (size_t i = 0; i < arrivals.list.size(); ++i) {
    sequences[arrivals.kinds[arrivals.list[i].kind]].push_back(i);
  }
  return sequences;
}

struct Matching {
  std::vector<std::vector<size_t>> groups;  // per collective: the arrival of each rank
  int64_t unmatched = 0;
};

Matching Match(const std::vector<Arrivals>& ranks) {
  std::vector<ByKind> sequences;
  for (const Arrivals& rank : ranks) sequences.push_back(Sequences(rank));
  Matching matching;
  for (const auto& [kind, first] : sequences[0]) {
    const bool everywhere = std::all_of(
        sequences.begin(), sequences.end(), [&kind = kind, &first = first](const ByKind& of_rank) {
          const auto found = of_rank.find(kind);
          return found != of_rank.end() && found->second.size() == first.size();
        });
    if (!everywhere) {
      matching.unmatched += static_cast<int64_t>(first.size());
      continue;
    }
    for (size_t i = 0; i < first.size(); ++i) {
      std::vector<size_t> group;
      for (const ByKind& of_rank : sequences) group.push_back(of_rank.at(kind)[i]);
      matching.groups.push_back(std::move(group));
    }
  }
  return matching;
}

std::vector<int64_t> ClockShifts(const std::vector<Arrivals>& ranks, const Matching& matching) {
  std::vector<int64_t> shifts(ranks.size(), 0);
  for (size_t r = 1; r < ranks.size(); ++r) {
    std::vector<int64_t> differences;
    for (const auto& group : matching.groups) {
      differences.push_back(ranks[0].list[group[0]].end_ns - ranks[r].list[group[r]].end_ns);
    }
    const int64_t shift = Median(std::move(differences));
    if (std::llabs(shift) >= kClocksAgreeNs) shifts[r] = shift;
  }
  return shifts;
}

}  // namespace

Arrivals ArrivalsOf(const DeviceTrace& trace) {
  Arrivals arrivals;
  std::map<std::string, uint32_t> kinds;
  for (const DeviceOp& op : trace.ops) {
    if (op.lane != Lane::kComm) continue;
    const NameId group = op.detail == kNone ? 0 : trace.collectives[op.detail].group;
    const std::string kind = CollectiveKind(trace, op) + "/" + std::string(trace.names[group]);
    const auto [place, added] = kinds.try_emplace(kind, static_cast<uint32_t>(arrivals.kinds.size()));
    if (added) arrivals.kinds.push_back(kind);
    arrivals.list.push_back({op.begin_ns, op.end_ns, place->second});
  }
  return arrivals;
}

RankComparison CompareRanks(const std::vector<Arrivals>& ranks) {
  RankComparison comparison;
  for (const Arrivals& rank : ranks) {
    comparison.ranks.push_back(
        {0, std::vector<int64_t>(rank.list.size(), -1), std::vector<uint32_t>(rank.list.size(), 0)});
  }
  if (ranks.size() < 2) return comparison;
  const Matching matching = Match(ranks);
  if (matching.groups.empty()) {
    comparison.notes.push_back("the ranks have no collectives in common: their clocks cannot be compared");
    return comparison;
  }
  const std::vector<int64_t> shifts = ClockShifts(ranks, matching);
  for (size_t r = 0; r < ranks.size(); ++r) {
    comparison.ranks[r].shift_ns = shifts[r];
    if (shifts[r] == 0) continue;
    comparison.notes.push_back("file " + std::to_string(r) + ": its clock differs by " +
                               FormatDuration(std::llabs(shifts[r])) + "; aligned at the ends of " +
                               std::to_string(matching.groups.size()) + " collectives");
  }
  uint32_t meeting = 0;
  for (const auto& group : matching.groups) {
    ++meeting;
    int64_t last = INT64_MIN;
    for (size_t r = 0; r < ranks.size(); ++r)
      last = std::max(last, ranks[r].list[group[r]].begin_ns + shifts[r]);
    for (size_t r = 0; r < ranks.size(); ++r) {
      const Arrival& arrival = ranks[r].list[group[r]];
      const int64_t wait = last - (arrival.begin_ns + shifts[r]);
      comparison.ranks[r].wait_ns[group[r]] = std::clamp<int64_t>(wait, 0, arrival.end_ns - arrival.begin_ns);
      comparison.ranks[r].meeting[group[r]] = meeting;
    }
  }
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

void ApplyWaits(const Arrivals& arrivals, const RankWaits& waits, record::RankInfo* info) {
  std::map<std::string, int64_t> by_kind;
  int64_t total = 0;
  bool known = false;
  for (size_t i = 0; i < arrivals.list.size(); ++i) {
    if (waits.wait_ns[i] < 0) continue;
    known = true;
    total += waits.wait_ns[i];
    by_kind[arrivals.kinds[arrivals.list[i].kind]] += waits.wait_ns[i];
  }
  if (!known) return;
  info->comm_wait_ns = total;
  if (info->graph) ApplyWaits(waits, &*info->graph);
  for (record::Step& step : info->steps) {
    step.comm_wait_ns = 0;
    const auto first = std::partition_point(
        arrivals.list.begin(), arrivals.list.end(),
        [&](const Arrival& arrival) { return arrival.begin_ns < step.end_ns - step.wall_ns; });
    for (auto it = first; it != arrivals.list.end() && it->begin_ns < step.end_ns; ++it) {
      step.comm_wait_ns +=
          std::max<int64_t>(0, waits.wait_ns[static_cast<size_t>(it - arrivals.list.begin())]);
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

void ShiftTimes(int64_t by_ns, Arrivals* arrivals) {
  for (Arrival& arrival : arrivals->list) {
    arrival.begin_ns += by_ns;
    arrival.end_ns += by_ns;
  }
}

}  // namespace fullbore::timeline
