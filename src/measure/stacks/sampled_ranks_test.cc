#include "measure/stacks/sampled_ranks.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/clock.h"

namespace fullbore::stacks {
namespace {

using record::Share;

constexpr int kPerS = 10;

// Two of three samples wait for the loader.
class SampledRanksTest : public testing::Test {
 protected:
  SampledRanksTest() {
    profile_.frames = {
        {"main", "/u/train.py", 3, "", true},
        {"_call_impl", "/p/site-packages/torch/nn/modules/module.py", 1, "torch.nn.modules.module", false},
        {"__next__", "/p/site-packages/torch/utils/data/dataloader.py", 1, "torch.utils.data.dataloader",
         false}};
    Thread thread;
    thread.pid = 12;
    for (int i = 0; i < 30; ++i) thread.samples.push_back(i % 3 == 0 ? Stack{0, 1} : Stack{0, 2});
    profile_.threads = {thread};
  }
  std::vector<record::RankInfo> Ranks() {
    Sources sources("/nowhere", "/");
    return RanksOf(profile_, Family("/nowhere", 12), sources, kPerS, 100 * kNsPerSecond);
  }
  Profile profile_;
};

TEST_F(SampledRanksTest, EachSecondIsAWindowWhoseSharesSumToIt) {
  const auto ranks = Ranks();
  ASSERT_EQ(ranks.size(), 1U);
  ASSERT_EQ(ranks[0].steps.size(), 3U);
  int64_t waited_ns = 0;
  for (const record::Step& step : ranks[0].steps) {
    int64_t sum_ns = 0;
    for (const int64_t ns : step.share_ns) sum_ns += ns;
    EXPECT_EQ(sum_ns, step.wall_ns);
    waited_ns += step.share_ns[Index(Share::kDataWait)];
  }
  EXPECT_EQ(waited_ns, 2 * kNsPerSecond);
  EXPECT_EQ(ranks[0].steps.back().end_ns, 100 * kNsPerSecond);
}

TEST_F(SampledRanksTest, SaysThatItWasSampledAndHowSureItIs) {
  EXPECT_NE(Ranks()[0].facts.at(kSampledFact).find(R"("samples": 30)"), std::string::npos);
}

TEST_F(SampledRanksTest, AProcessWithoutAPassIsNoRank) {
  for (Stack& stack : profile_.threads[0].samples) stack = {0};
  EXPECT_TRUE(Ranks().empty());
}

TEST_F(SampledRanksTest, WindowsThatDifferAreLessCertainThanTheirSamples) {
  const auto window = [](double ratio) {
    record::Step step;
    step.wall_ns = 1000;
    step.share_ns[Index(Share::kDataWait)] = static_cast<int64_t>(1000 * ratio);
    return step;
  };
  const double alike = UncertaintyOf({window(0.5), window(0.5), window(0.5), window(0.5)}, 400);
  EXPECT_NEAR(alike, 1.96 * std::sqrt(0.25 / 400), 1e-9);  // of a binomial proportion
  EXPECT_GT(UncertaintyOf({window(0.1), window(0.9), window(0.1), window(0.9)}, 400), 3 * alike);
  EXPECT_EQ(UncertaintyOf({}, 0), 1);
}

}  // namespace
}  // namespace fullbore::stacks
