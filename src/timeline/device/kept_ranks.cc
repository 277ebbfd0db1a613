#include "timeline/device/kept_ranks.h"

#include <algorithm>
#include <set>

namespace fullbore::timeline {
namespace {

// The first one from `start` on that has steps, and of which `fits` holds; the number of ranks if there is none.
template <typename Fits>
size_t FirstOf(const std::vector<RankInBrief>& ranks, size_t start, Fits fits) {
  while (start < ranks.size() && (ranks[start].begin_ns == ranks[start].end_ns || !fits(ranks[start])))
    ++start;
  return start;
}

// The others that the rank meets in its graph, those that wait least there first.
std::vector<size_t> MetBy(size_t rank, const std::vector<RankInBrief>& ranks,
                          const RankComparison& comparison) {
  const auto& own = comparison.ranks[rank].meeting;
  std::set<uint32_t> meetings(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(ranks[rank].in_graph));
  meetings.erase(0);
  struct Met {
    size_t rank;
    int64_t waits_ns;
  };
  std::vector<Met> met;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const RankWaits& waits = comparison.ranks[r];
    int64_t waits_ns = 0;
    bool meets = false;
    for (size_t i = 0; i < ranks[r].in_graph; ++i) {
      meets = meets || meetings.contains(waits.meeting[i]);
      waits_ns += std::max<int64_t>(0, waits.wait_ns[i]);
    }
    if (meets && r != rank) met.push_back({r, waits_ns});
  }
  std::ranges::stable_sort(met, {}, &Met::waits_ns);
  std::vector<size_t> numbers;
  for (const Met& other : met) numbers.push_back(other.rank);
  return numbers;
}

}  // namespace

std::vector<size_t> RanksToKeep(const std::vector<RankInBrief>& ranks, const RankComparison& comparison) {
  size_t first = FirstOf(ranks, 0, [](const RankInBrief&) { return true; });
  if (first == ranks.size()) first = 0;  // none has steps
  const size_t second = FirstOf(ranks, first + 1, [&](const RankInBrief& rank) {
    return rank.begin_ns < ranks[first].end_ns && rank.end_ns > ranks[first].begin_ns;
  });
  std::set<size_t> kept;
  for (const size_t rank : {first, second}) {
    if (rank >= ranks.size()) continue;
    kept.insert(rank);
    std::vector<size_t> met = MetBy(rank, ranks, comparison);
    met.resize(std::min(met.size(), record::kMostRanksTogether - 1));
    kept.insert(met.begin(), met.end());
  }
  return {kept.begin(), kept.end()};
}

}  // namespace fullbore::timeline
