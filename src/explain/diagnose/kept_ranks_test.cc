// Of many ranks the graphs of a few are kept (timeline/device/kept_ranks.h): they are enough for what is asked of them.
#include "timeline/device/kept_ranks.h"

#include <gmock/gmock.h>

#include <random>

#include "explain/replay/ranks.h"
#include "explain/replay/testing/made_graph.h"

namespace fullbore::diagnose {
namespace {

using record::Dependency;
using record::StepGraph;
using record::Work;

constexpr int64_t kUs = 1000;
constexpr size_t kRanks = 40;
constexpr int64_t kSteps = 3;

struct MadeRun {
  std::vector<timeline::Arrivals> arrivals;
  std::vector<StepGraph> graphs;
  std::vector<timeline::RankInBrief> brief;
};

// Steps of 300 us in which each rank comes to its group's collective when it likes, and all leave it together.
MadeRun Made(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t end) { return static_cast<int64_t>(random() % end); };
  MadeRun run;
  const int64_t groups = 1 + below(4);
  for (size_t r = 0; r < kRanks; ++r) {
    timeline::Arrivals rank;
    replay::testing::MadeGraph made;
    rank.rank = static_cast<int>(r);
    rank.kinds = {"all_reduce/" + std::to_string(below(static_cast<uint32_t>(groups)))};
    rank.group_size = {-1};
    auto end = made.Add(Work::kStepEnd, 0);
    for (int64_t step = 0; step < kSteps; ++step) {
      const int64_t computes_us = below(200);
      rank.Add({(step * 300 + computes_us) * kUs, (step + 1) * 300 * kUs}, {});
      const auto host = made.Add(Work::kHost, computes_us, {{end}});
      const auto reduce = made.Add(Work::kDevice, 300 - computes_us, {{host, Dependency::kLaunch}});
      made[reduce].lane = record::Lane::kComm;
      end = made.Add(Work::kStepEnd, 0, {{reduce, Dependency::kStream}});
    }
    run.arrivals.push_back(rank);
    run.graphs.push_back(made.Graph(300));
    run.brief.push_back({0, kSteps * 300 * kUs, static_cast<size_t>(kSteps)});
  }
  return run;
}

TEST(KeptRanksTest, TheReplayTakesOfThoseThatAreKeptTheSameOnesAsOfAll) {
  int beside_each_other = 0;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    MadeRun run = Made(seed);
    const timeline::RankComparison comparison = timeline::CompareRanks(run.arrivals);
    const std::vector<size_t> kept = timeline::RanksToKeep(run.brief, comparison);
    EXPECT_LE(kept.size(), timeline::kMostKeptRanks);
    std::vector<const StepGraph*> all, some;
    for (size_t r = 0; r < kRanks; ++r) {
      record::RankInfo info;
      info.graph = std::move(run.graphs[r]);
      timeline::ApplyWaits(run.arrivals[r], comparison.ranks[r], &info);
      run.graphs[r] = std::move(*info.graph);
      all.push_back(&run.graphs[r]);
      if (std::ranges::count(kept, r)) some.push_back(&run.graphs[r]);
    }
    // The judged rank, and the one whose steps tell what it costs where the judged one is late.
    for (const StepGraph* graph : {all[0], all[1]}) {
      EXPECT_EQ(replay::RanksAround(*graph, some), replay::RanksAround(*graph, all)) << "seed " << seed;
      beside_each_other += replay::RanksAround(*graph, all).size() == record::kMostRanksTogether ? 1 : 0;
    }
  }
  EXPECT_GT(beside_each_other, 50) << "else it was tested little";
}

}  // namespace
}  // namespace fullbore::diagnose
