#include "timeline/device/ranks.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

#include "base/text.h"
#include "timeline/device/tables.h"

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

// How far apart the middle half of the values lie.
int64_t SpreadOf(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() * 3 / 4] - values[values.size() / 4];
}

using ByKind = std::map<std::string, std::vector<size_t>>;

// For each kind, its arrivals in order.
ByKind Sequences(const Arrivals& arrivals) {
  ByKind sequences;
  for (size_t i = 0; i < arrivals.list.size(); ++i) {
    sequences[arrivals.kinds[arrivals.list[i].kind]].push_back(i);
  }
  return sequences;
}

struct Meeting {
  std::vector<std::pair<size_t, size_t>> members;  // rank and arrival
  bool of_stages = false;                          // a send with its receive
};

struct Matching {
  std::vector<Meeting> meetings;
  int64_t unmatched = 0;
};

Role RoleOfKind(std::string_view kind) {
  if (kind.starts_with('i')) kind.remove_prefix(1);  // isend, irecv
  if (kind.starts_with("send_recv") || kind.starts_with("coalesced") || kind.starts_with("sendrecv"))
    return Role::kExchange;
  if (kind.starts_with("send")) return Role::kSend;
  return kind.starts_with("recv") || kind.starts_with("receive") ? Role::kReceive : Role::kCollective;
}

std::string_view GroupOf(std::string_view kind) { return kind.substr(kind.find('/') + 1); }

// Of a send or receive. What only has the name of a kernel that does both may be an all-to-all.
bool BetweenStages(const Arrivals& rank, const Arrival& arrival) {
  const Role role = rank.RoleOf(arrival);
  return role == Role::kSend || role == Role::kReceive ||
         (role == Role::kExchange && !GroupOf(rank.kinds[arrival.kind]).empty());
}

// The ranks that take part in a kind of collective: the n-th of one meets the n-th of the others, if all have the same
// number. Groups of a part of the ranks have a name.
class CollectiveMatcher {
 public:
  CollectiveMatcher(const std::vector<Arrivals>& ranks, Matching* matching)
      : ranks_(ranks), matching_(matching) {
    for (const Arrivals& rank : ranks) sequences_.push_back(Sequences(rank));
  }

  void Match() {
    std::map<std::string, std::vector<size_t>> holders;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      for (const auto& [kind, sequence] : sequences_[r]) holders[kind].push_back(r);
    }
    for (const auto& [kind, of_kind] : holders) {
      // Without a name, what looks like an exchange may be an all-to-all among all.
      const Role role = RoleOfKind(kind);
      const bool among_all = role == Role::kExchange && GroupOf(kind).empty() && of_kind.size() > 2;
      if (role != Role::kCollective && !among_all) continue;
      if (Meet(kind, of_kind) && (!among_all || EndTogether())) continue;
      matching_->meetings.resize(before_);
      matching_->unmatched += static_cast<int64_t>(sequences_[of_kind[0]].at(kind).size());
    }
  }

 private:
  bool Meet(const std::string& kind, const std::vector<size_t>& of_kind) {
    before_ = matching_->meetings.size();
    const auto& first = sequences_[of_kind[0]].at(kind);
    const bool everywhere = of_kind.size() == ranks_.size();
    const int size = ranks_[of_kind[0]].SizeOf(first[0]);
    if (of_kind.size() < 2 || (!everywhere && GroupOf(kind).empty())) return false;
    if (!everywhere && size > 0 && of_kind.size() > static_cast<size_t>(size)) return false;
    for (const size_t r : of_kind) {
      if (sequences_[r].at(kind).size() != first.size()) return false;
    }
    for (size_t i = 0; i < first.size(); ++i) {
      Meeting meeting;
      for (const size_t r : of_kind) meeting.members.emplace_back(r, sequences_[r].at(kind)[i]);
      matching_->meetings.push_back(std::move(meeting));
    }
    return true;
  }

  // Whether what was taken for meetings ends on all ranks alike, but for the difference of their clocks.
  bool EndTogether() const {
    const auto& members = matching_->meetings[before_].members;
    for (size_t k = 1; k < members.size(); ++k) {
      std::vector<int64_t> differences;
      for (size_t m = before_; m < matching_->meetings.size(); ++m) {
        const auto& [first, with] =
            std::pair(matching_->meetings[m].members[0], matching_->meetings[m].members[k]);
        differences.push_back(ranks_[first.first].list[first.second].end_ns -
                              ranks_[with.first].list[with.second].end_ns);
      }
      if (SpreadOf(differences) > kClocksAgreeNs) return false;
    }
    return true;
  }

  const std::vector<Arrivals>& ranks_;
  Matching* const matching_;
  std::vector<ByKind> sequences_;
  size_t before_ = 0;  // meetings, as the kind at hand was begun
};

// The sends of a rank to each other one meet the receives there, in order.
class StageMatcher {
 public:
  StageMatcher(const std::vector<Arrivals>& ranks, Matching* matching) : ranks_(ranks), matching_(matching) {
    for (size_t r = 0; r < ranks.size(); ++r) {
      by_number_[ranks[r].rank < 0 ? static_cast<int>(r) : ranks[r].rank] = r;
      for (const Arrival& arrival : ranks[r].list) {
        if (ranks[r].RoleOf(arrival) == Role::kCollective) continue;
        auto& of_group = members_[std::string(GroupOf(ranks[r].kinds[arrival.kind]))];
        if (of_group.empty() || of_group.back() != r) of_group.push_back(r);
      }
    }
  }

  void Match() {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      for (size_t i = 0; i < ranks_[r].list.size(); ++i) Take(r, i);
    }
    for (const auto& [way, ends] : ways_) {
      if (ends.sends.size() != ends.receives.size()) {
        matching_->unmatched += static_cast<int64_t>(std::max(ends.sends.size(), ends.receives.size()));
        continue;
      }
      for (size_t i = 0; i < ends.sends.size(); ++i)
        matching_->meetings.push_back({{{way.from, ends.sends[i]}, {way.to, ends.receives[i]}}, true});
    }
  }

 private:
  struct Way {  // in a group, from a rank to another
    std::string group;
    size_t from, to;
    bool operator<(const Way& other) const {
      return std::tie(group, from, to) < std::tie(other.group, other.from, other.to);
    }
  };
  struct Ends {
    std::vector<size_t> sends, receives;
  };

  void Take(size_t r, size_t i) {
    const Arrival& arrival = ranks_[r].list[i];
    const Role role = ranks_[r].RoleOf(arrival);
    if (role == Role::kCollective) return;
    const std::string group(GroupOf(ranks_[r].kinds[arrival.kind]));
    const size_t peer = PeerOf(r, arrival, members_.at(group));
    if (peer == ranks_.size() || peer == r) return;
    // Of an exchange the direction does not matter: it is taken as sent by the lower rank.
    const bool sends = role == Role::kSend || (role == Role::kExchange && r < peer);
    Ends& ends =
        ways_[{role == Role::kExchange ? group + "/both" : group, sends ? r : peer, sends ? peer : r}];
    (sends ? ends.sends : ends.receives).push_back(i);
  }

  // As recorded, or the only other one of the group; else the number of ranks.
  size_t PeerOf(size_t r, const Arrival& arrival, const std::vector<size_t>& of_group) const {
    if (arrival.peer >= 0) {
      const auto named = by_number_.find(arrival.peer);
      return named == by_number_.end() ? ranks_.size() : named->second;
    }
    if (of_group.size() != 2) return ranks_.size();
    return of_group[0] == r ? of_group[1] : of_group[0];
  }

  const std::vector<Arrivals>& ranks_;
  Matching* const matching_;
  std::map<std::string, std::vector<size_t>> members_;  // of groups that send and receive
  std::map<int, size_t> by_number_;
  std::map<Way, Ends> ways_;
};

// By how much each rank's clock differs from that of a rank that it meets, and so on to the first one's. Collectives
// tell; where there is none, sends and receives, as far as they end together.
std::vector<int64_t> ClockShifts(const std::vector<Arrivals>& ranks, const Matching& matching) {
  struct Pair {
    std::vector<int64_t> collectives, stages;  // differences of the ends
  };
  std::map<std::pair<size_t, size_t>, Pair> pairs;
  for (const Meeting& meeting : matching.meetings) {
    const auto& [first, arrival] = meeting.members[0];
    for (size_t k = 1; k < meeting.members.size(); ++k) {
      const auto& [other, of_other] = meeting.members[k];
      const int64_t ns = ranks[first].list[arrival].end_ns - ranks[other].list[of_other].end_ns;
      Pair& pair = pairs[std::minmax(first, other)];
      (meeting.of_stages ? pair.stages : pair.collectives).push_back(first < other ? ns : -ns);
    }
  }
  std::vector<int64_t> shifts(ranks.size(), 0);
  std::vector<bool> known(ranks.size(), false);
  const auto spread_from = [&](size_t start) {
    known[start] = true;
    for (std::vector<size_t> at = {start}; !at.empty();) {
      std::vector<size_t> next;
      for (const size_t r : at) {
        for (const auto& [who, pair] : pairs) {
          if (who.first != r && who.second != r) continue;
          const size_t other = who.first == r ? who.second : who.first;
          const auto& differences = pair.collectives.empty() ? pair.stages : pair.collectives;
          if (known[other] || (pair.collectives.empty() && SpreadOf(differences) > kClocksAgreeNs)) continue;
          const int64_t ns = Median(differences);
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

}  // namespace

Role Arrivals::RoleOf(const Arrival& arrival) const { return RoleOfKind(kinds[arrival.kind]); }

int Arrivals::SizeOf(size_t arrival) const {
  const uint32_t kind = list[arrival].kind;
  return kind < group_size.size() ? group_size[kind] : -1;
}

Arrivals ArrivalsOf(const DeviceTrace& trace, const ExposedTime& exposed) {
  Arrivals arrivals;
  arrivals.rank = trace.rank.value_or(-1);
  std::map<std::string, uint32_t> kinds;
  for (const DeviceOp& op : trace.ops) {
    if (op.lane != Lane::kComm) continue;
    const Collective about = op.detail == kNone ? Collective{} : trace.collectives[op.detail];
    const std::string kind = CollectiveKind(trace, op) + "/" + std::string(trace.names[about.group]);
    const auto [place, added] = kinds.try_emplace(kind, static_cast<uint32_t>(arrivals.kinds.size()));
    if (added) {
      arrivals.kinds.push_back(kind);
      arrivals.group_size.push_back(about.group_size);
    }
    arrivals.list.push_back(
        {op.begin_ns, op.end_ns, place->second, about.peer, exposed.Within(op.begin_ns, op.end_ns)});
  }
  return arrivals;
}

void Append(const Arrivals& next, Arrivals* arrivals) {
  for (Arrival arrival : next.list) {
    const std::string& kind = next.kinds[arrival.kind];
    auto known = std::find(arrivals->kinds.begin(), arrivals->kinds.end(), kind);
    if (known == arrivals->kinds.end()) {
      arrivals->kinds.push_back(kind);
      arrivals->group_size.push_back(arrival.kind < next.group_size.size() ? next.group_size[arrival.kind]
                                                                           : -1);
      known = std::prev(arrivals->kinds.end());
    }
    arrival.kind = static_cast<uint32_t>(known - arrivals->kinds.begin());
    arrivals->list.push_back(arrival);
  }
}

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
  Matching matching;
  CollectiveMatcher(ranks, &matching).Match();
  StageMatcher(ranks, &matching).Match();
  if (matching.meetings.empty()) {
    comparison.notes.push_back("the ranks have no collectives in common: their clocks cannot be compared");
    return comparison;
  }
  const std::vector<int64_t> shifts = ClockShifts(ranks, matching);
  for (size_t r = 0; r < ranks.size(); ++r) {
    comparison.ranks[r].shift_ns = shifts[r];
    if (shifts[r] == 0) continue;
    comparison.notes.push_back("file " + std::to_string(r) + ": its clock differs by " +
                               FormatDuration(std::llabs(shifts[r])) + "; aligned at the ends of " +
                               std::to_string(matching.meetings.size()) + " collectives");
  }
  uint32_t number = 0;
  for (const Meeting& meeting : matching.meetings) {
    ++number;
    int64_t last = INT64_MIN;
    for (const auto& [r, i] : meeting.members) last = std::max(last, ranks[r].list[i].begin_ns + shifts[r]);
    for (const auto& [r, i] : meeting.members) {
      const Arrival& arrival = ranks[r].list[i];
      const int64_t wait = last - (arrival.begin_ns + shifts[r]);
      comparison.ranks[r].wait_ns[i] = std::clamp<int64_t>(wait, 0, arrival.end_ns - arrival.begin_ns);
      comparison.ranks[r].meeting[i] = number;
      comparison.ranks[r].of_stages[i] = meeting.of_stages;
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
      info->noticed.bubble_ns += std::min(for_stages[i], it->exposed_ns);
      info->noticed.transfer_ns += std::max<int64_t>(0, it->exposed_ns - for_stages[i]);
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
