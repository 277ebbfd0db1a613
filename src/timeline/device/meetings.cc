#include "timeline/device/meetings.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace fullbore::timeline {
namespace {

// The ranks that take part in a kind of collective: the n-th of one meets the n-th of the others, if all have the same
// number. Groups of a part of the ranks have a name.
class CollectiveMatcher {
 public:
  CollectiveMatcher(const std::vector<Arrivals>& ranks, Matching* matching)
      : ranks_(ranks), matching_(matching) {
    for (uint32_t r = 0; r < ranks.size(); ++r) AddRank(r);
  }

  void Match() {
    for (auto& [kind, parties] : by_kind_) {
      // Without a name, what looks like an exchange may be an all-to-all among all.
      const Role role = RoleOfKind(kind);
      const bool among_all = role == Role::kExchange && GroupOf(kind).empty() && parties.size() > 2;
      if (role != Role::kCollective && !among_all) continue;
      if (Meet(kind, parties) && (!among_all || EndTogether(parties)))
        matching_->all.push_back({std::move(parties)});
      else
        matching_->unmatched += static_cast<int64_t>(parties[0].arrivals.size());
    }
  }

 private:
  void AddRank(uint32_t r) {
    std::vector<std::vector<uint32_t>> of_kind(ranks_[r].kinds.size());
    for (uint32_t i = 0; i < ranks_[r].list.size(); ++i) of_kind[ranks_[r].list[i].kind].push_back(i);
    for (size_t kind = 0; kind < of_kind.size(); ++kind) {
      if (of_kind[kind].empty()) continue;
      of_kind[kind].shrink_to_fit();
      by_kind_[ranks_[r].kinds[kind]].push_back({r, std::move(of_kind[kind])});
    }
  }

  bool Meet(const std::string& kind, const std::vector<Party>& parties) const {
    const Party& first = parties[0];
    const bool everywhere = parties.size() == ranks_.size();
    const int size = ranks_[first.rank].SizeOf(first.arrivals[0]);
    if (parties.size() < 2 || (!everywhere && GroupOf(kind).empty())) return false;
    if (!everywhere && size > 0 && parties.size() > static_cast<size_t>(size)) return false;
    return std::ranges::all_of(
        parties, [&](const Party& party) { return party.arrivals.size() == first.arrivals.size(); });
  }

  // Whether what was taken for meetings ends on all ranks alike, but for the difference of their clocks.
  bool EndTogether(const std::vector<Party>& parties) const {
    return std::all_of(parties.begin() + 1, parties.end(), [&](const Party& party) {
      std::vector<int64_t> differences;
      AddDifferences(ranks_, parties[0], party, &differences);
      return SpreadOf(std::move(differences)) <= kClocksAgreeNs;
    });
  }

  const std::vector<Arrivals>& ranks_;
  Matching* const matching_;
  std::map<std::string, std::vector<Party>> by_kind_;  // of each kind, the ranks that have it
};

// The sends of a rank to each other one meet the receives there, in order.
class StageMatcher {
 public:
  StageMatcher(const std::vector<Arrivals>& ranks, Matching* matching) : ranks_(ranks), matching_(matching) {
    for (uint32_t r = 0; r < ranks.size(); ++r) {
      by_number_[ranks[r].rank < 0 ? static_cast<int>(r) : ranks[r].rank] = r;
      for (const Arrival& arrival : ranks[r].list) {
        if (ranks[r].RoleOf(arrival) == Role::kCollective) continue;
        auto& of_group = members_[std::string(GroupOf(ranks[r].kinds[arrival.kind]))];
        if (of_group.empty() || of_group.back() != r) of_group.push_back(r);
      }
    }
  }

  void Match() {
    for (uint32_t r = 0; r < ranks_.size(); ++r) {
      for (uint32_t i = 0; i < ranks_[r].list.size(); ++i) Take(r, i);
    }
    for (auto& [way, ends] : ways_) {
      if (ends.sends.size() != ends.receives.size()) {
        matching_->unmatched += static_cast<int64_t>(std::max(ends.sends.size(), ends.receives.size()));
        continue;
      }
      matching_->all.push_back(
          {{{way.from, std::move(ends.sends)}, {way.to, std::move(ends.receives)}}, true});
    }
  }

 private:
  struct Way {  // in a group, from a rank to another
    std::string group;
    uint32_t from, to;
    bool operator<(const Way& other) const {
      return std::tie(group, from, to) < std::tie(other.group, other.from, other.to);
    }
  };
  struct Ends {
    std::vector<uint32_t> sends, receives;
  };

  void Take(uint32_t r, uint32_t i) {
    const Arrival& arrival = ranks_[r].list[i];
    const Role role = ranks_[r].RoleOf(arrival);
    if (role == Role::kCollective) return;
    const std::string group(GroupOf(ranks_[r].kinds[arrival.kind]));
    const uint32_t peer = PeerOf(r, arrival, members_.at(group));
    if (peer == ranks_.size() || peer == r) return;
    // Of an exchange the direction does not matter: it is taken as sent by the lower rank.
    const bool sends = role == Role::kSend || (role == Role::kExchange && r < peer);
    Ends& ends =
        ways_[{role == Role::kExchange ? group + "/both" : group, sends ? r : peer, sends ? peer : r}];
    (sends ? ends.sends : ends.receives).push_back(i);
  }

  // As recorded, or the only other one of the group; else the number of ranks.
  uint32_t PeerOf(uint32_t r, const Arrival& arrival, const std::vector<uint32_t>& of_group) const {
    const auto nobody = static_cast<uint32_t>(ranks_.size());
    if (const int32_t peer = ranks_[r].transfers[arrival.transfer].peer; peer >= 0) {
      const auto named = by_number_.find(peer);
      return named == by_number_.end() ? nobody : named->second;
    }
    if (of_group.size() != 2) return nobody;
    return of_group[0] == r ? of_group[1] : of_group[0];
  }

  const std::vector<Arrivals>& ranks_;
  Matching* const matching_;
  std::map<std::string, std::vector<uint32_t>> members_;  // of groups that send and receive
  std::map<int, uint32_t> by_number_;
  std::map<Way, Ends> ways_;
};

}  // namespace

Matching Match(const std::vector<Arrivals>& ranks) {
  Matching matching;
  CollectiveMatcher(ranks, &matching).Match();
  StageMatcher(ranks, &matching).Match();
  return matching;
}

void AddDifferences(const std::vector<Arrivals>& ranks, const Party& first, const Party& other,
                    std::vector<int64_t>* differences) {
  for (size_t i = 0; i < first.arrivals.size(); ++i)
    differences->push_back(ArrivalOf(ranks, first, i).end_ns - ArrivalOf(ranks, other, i).end_ns);
}

int64_t SpreadOf(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() * 3 / 4] - values[values.size() / 4];
}

}  // namespace fullbore::timeline
