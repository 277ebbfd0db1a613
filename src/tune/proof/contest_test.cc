#include "tune/proof/contest.h"

#include <gmock/gmock.h>

#include <functional>
#include <random>

namespace fullbore::tune {
namespace {

using testing::HasSubstr;

Trial Ok(double rate, double half = 0) {
  Trial trial;
  trial.rate = Rate{rate, rate - half, rate + half};
  trial.seconds = 10;
  return trial;
}

Trial Crashed() {
  Trial trial;
  trial.outcome = Outcome::kCrashed;
  trial.why = "exit status 1: no such file";
  return trial;
}

// Two programs that run at known rates, and a clock that their trials move.
class MadeTrack : public Track {
 public:
  MadeTrack(double baseline, double candidate, double noise = 0)
      : MadeTrack([=](Side side, std::mt19937& random) {
          const double rate = side == Side::kBaseline ? baseline : candidate;
          return Ok(rate * std::normal_distribution<double>(1, noise + 1e-9)(random), 2 * noise * rate);
        }) {}
  explicit MadeTrack(std::function<Trial(Side, std::mt19937&)> trial) : trial_(std::move(trial)) {}

  std::optional<Made> Try(Side side) override {
    order += side == Side::kBaseline ? 'A' : 'B';
    const Trial trial = trial_(side, random_);
    left -= trial.seconds;
    if (left < 0) return std::nullopt;
    return Made{side, trial};
  }
  double left_s() const override { return left; }
  void OnPair(const Proof& so_far) override { seen.push_back(so_far.pairs.size()); }
  void Seed(uint32_t seed) { random_.seed(seed); }

  double left = 1000;
  std::string order;
  std::vector<size_t> seen;

 private:
  std::function<Trial(Side, std::mt19937&)> trial_;
  std::mt19937 random_{7};
};

TEST(ContestTest, AFinerConditionIsToldBeforeNoDifferenceEndsIt) {
  MadeTrack coarse(100, 99.9, 0.001), fine(100, 99.9, 0.001);
  EXPECT_EQ(Compete({1}, coarse).ending, Ending::kNoDifference);
  const Contest contest = Compete({0.999}, fine);
  EXPECT_NE(contest.ending, Ending::kNoDifference) << "0.1 % was asked for";
}

TEST(ContestTest, ALargeGainIsToldByThreePairsInTurns) {
  MadeTrack track(100, 200);
  const Contest contest = Compete({1}, track);
  EXPECT_EQ(contest.standing(), Standing::kFaster);
  EXPECT_EQ(contest.ending, Ending::kDecided);
  EXPECT_EQ(track.order, "ABBAAB");
  EXPECT_THAT(track.seen, testing::ElementsAre(1, 2, 3));
  EXPECT_NEAR(contest.proof.gain()->expected, 2, 1e-6);
  EXPECT_EQ(WhatWouldSettle(contest), "");
}

TEST(ContestTest, WhatTwoPairsToldIsToldWhereThereIsNoTimeForMore) {
  MadeTrack track(100, 200);
  track.left = 55;
  const Contest contest = Compete({1}, track);
  EXPECT_EQ(track.order, "ABBA");
  EXPECT_EQ(contest.ending, Ending::kOver);
  EXPECT_EQ(contest.standing(), Standing::kFaster);
  EXPECT_EQ(WhatWouldSettle(contest), "");
}

TEST(ContestTest, ASlowerCandidateIsToldToo) {
  MadeTrack track(200, 100);
  const Contest contest = Compete({1}, track);
  EXPECT_EQ(contest.standing(), Standing::kSlower);
  EXPECT_EQ(contest.ending, Ending::kDecided);
}

TEST(ContestTest, TwoThatAreTheSameEndAsSoonAsNoDifferenceCouldMatter) {
  MadeTrack track(100, 100, 0.001);
  const Contest contest = Compete({1}, track);
  EXPECT_EQ(contest.standing(), Standing::kNotProven);
  EXPECT_EQ(contest.ending, Ending::kNoDifference);
  EXPECT_LT(contest.proof.pairs.size(), kMostPairs);
  EXPECT_THAT(WhatWouldSettle(contest), HasSubstr("Neither is faster by 2 %"));
}

TEST(ContestTest, ASmallGainInNoiseStaysOpenAndSaysWhatWouldSettleIt) {
  MadeTrack track(100, 103, 0.1);
  const Contest contest = Compete({1}, track);
  EXPECT_EQ(contest.standing(), Standing::kNotProven);
  EXPECT_EQ(contest.ending, Ending::kTooNoisy);
  EXPECT_EQ(contest.proof.pairs.size(), kMostPairs);
  EXPECT_THAT(WhatWouldSettle(contest), HasSubstr("other programs"));
  EXPECT_THAT(WhatWouldSettle(contest), HasSubstr("longer trials: --precision 1%"));
  MadeTrack in_slices([](Side side, std::mt19937& random) {
    Trial trial =
        Ok((side == Side::kBaseline ? 100 : 103) * std::normal_distribution<double>(1, 0.1)(random));
    trial.in_slices = true;
    return trial;
  });
  EXPECT_THAT(WhatWouldSettle(Compete({1}, in_slices)),
              HasSubstr("longer trials: --whole-runs --precision 1%"));
}

TEST(ContestTest, NoPairIsBegunThatTheTimeHasNoRoomFor) {
  MadeTrack track(100, 200);
  track.left = 35;  // one pair takes 20
  const Contest contest = Compete({1}, track);
  EXPECT_EQ(contest.ending, Ending::kOver);
  EXPECT_EQ(track.order, "AB");
  EXPECT_EQ(contest.standing(), Standing::kNotProven) << "one pair proves nothing";
  EXPECT_THAT(WhatWouldSettle(contest), HasSubstr("At least two pairs of trials"));
}

TEST(ContestTest, ATrialThatTheTimeEndsDoesNotCount) {
  MadeTrack track(100, 200);
  track.left = 15;
  const Contest contest = Compete({1}, track);
  EXPECT_EQ(contest.ending, Ending::kOver);
  EXPECT_EQ(contest.trials.size(), 1u);
  EXPECT_TRUE(contest.proof.pairs.empty());
}

TEST(ContestTest, WhereFewPairsMoreWouldTellTheBudgetForThemIsNamed) {
  int count = 0;
  // Ratios of 1.1 and 1.3: open after two pairs, told by more that spread as widely.
  MadeTrack track([&](Side side, std::mt19937&) {
    return Ok(side == Side::kBaseline ? 100 : (count++ % 2 == 0 ? 110 : 130));
  });
  track.left = 50;
  const Contest contest = Compete({1}, track);
  ASSERT_EQ(contest.proof.pairs.size(), 2u);
  EXPECT_EQ(contest.standing(), Standing::kNotProven);
  EXPECT_THAT(WhatWouldSettle(contest),
              testing::MatchesRegex("[4-8] pairs like these would settle it: --budget [0-9]m\\."));
}

TEST(ContestTest, ACommandThatCannotBeMeasuredEndsItAtOnceAndIsNamed) {
  MadeTrack baseline([](Side, std::mt19937&) { return Crashed(); });
  Contest contest = Compete({1}, baseline);
  EXPECT_EQ(contest.ending, Ending::kFailed);
  EXPECT_EQ(contest.why, "the baseline could not be measured: crashed, exit status 1: no such file");
  EXPECT_EQ(baseline.order, "A");
  MadeTrack candidate([](Side side, std::mt19937&) { return side == Side::kBaseline ? Ok(100) : Crashed(); });
  contest = Compete({1}, candidate);
  EXPECT_EQ(contest.ending, Ending::kFailed);
  EXPECT_THAT(contest.why, HasSubstr("the candidate could not be measured"));
  EXPECT_EQ(candidate.order, "AB");
  EXPECT_EQ(contest.unit, kSamplesPerSecond) << "the baseline's";
  MadeTrack in_steps([](Side side, std::mt19937&) {
    Trial trial = side == Side::kBaseline ? Ok(100) : Crashed();
    if (side == Side::kBaseline) trial.unit = kStepsPerSecond;
    return trial;
  });
  EXPECT_EQ(Compete({1}, in_steps).unit, kStepsPerSecond) << "one that failed has none";
}

class RefusingTrack : public MadeTrack {
 public:
  RefusingTrack() : MadeTrack(100, 100) {}
  std::optional<Made> Try(Side) override { return Made{Side::kCandidate, Crashed()}; }
};

TEST(ContestTest, ACandidateThatFailedWhileTheBaselineWasWantedIsTheOneNamed) {
  RefusingTrack track;
  const Contest contest = Compete({1}, track);
  EXPECT_EQ(contest.why, "the candidate could not be measured: crashed, exit status 1: no such file");
}

TEST(ContestTest, StepsAreComparedWithStepsWhereTheSamplesOfOnlyOneAreKnown) {
  MadeTrack track([](Side side, std::mt19937&) {
    Trial trial = Ok(side == Side::kBaseline ? 3200 : 20);
    if (side == Side::kBaseline) trial.steps_rate = Rate{10, 10, 10};
    if (side == Side::kCandidate) trial.unit = kStepsPerSecond;
    return trial;
  });
  const Contest contest = Compete({1}, track);
  EXPECT_EQ(contest.ending, Ending::kDecided) << contest.why;
  EXPECT_NEAR(contest.proof.gain()->expected, 2, 1e-6);
  EXPECT_EQ(contest.unit, kStepsPerSecond);
}

TEST(ContestTest, StepsAreNotComparedWithSamples) {
  MadeTrack track([](Side side, std::mt19937&) {
    Trial trial = Ok(100);
    if (side == Side::kCandidate) trial.unit = kStepsPerSecond;
    return trial;
  });
  const Contest contest = Compete({1}, track);
  EXPECT_EQ(contest.ending, Ending::kFailed);
  EXPECT_EQ(contest.why, "the baseline is counted in samples/s, the candidate in steps/s");
}

TEST(ContestTest, EndsWhenTheQuestionIsAnsweredThatWasAsked) {
  MadeTrack slower(100, 95, 0.003), asked_for_less(100, 95, 0.003);
  const Contest whether = Compete({1}, slower), by_how_much = Compete({0.9}, asked_for_less);
  EXPECT_EQ(whether.standing(), Standing::kSlower);
  EXPECT_EQ(by_how_much.ending, Ending::kDecided);
  EXPECT_GT(by_how_much.proof.gain()->low, 0.9);
}

TEST(ContestTest, TwoThatAreTheSameAreHardlyEverToldApart) {
  constexpr int kContests = 2000;
  for (const double noise : {0.01, 0.05, 0.2}) {
    MadeTrack track(100, 100, noise);
    int claimed = 0;
    for (int i = 0; i < kContests; ++i) {
      track.left = 1000;
      claimed += Compete({1}, track).standing() != Standing::kNotProven;
    }
    EXPECT_LE(claimed, kContests / 50) << noise << ": 1 % on either side";
  }
}

TEST(ContestTest, LossesOfTheTwoAreComparedWhereBothSayThem) {
  MadeTrack track([](Side side, std::mt19937&) {
    Trial trial = Ok(side == Side::kBaseline ? 100 : 200);
    trial.first_losses = {2.0, side == Side::kBaseline ? 1.0 : 1.1};
    return trial;
  });
  const auto losses = Compete({1}, track).losses();
  ASSERT_TRUE(losses.has_value());
  EXPECT_EQ(losses->steps, 2);
  EXPECT_NEAR(losses->largest, 0.1, 1e-9);
  EXPECT_EQ(losses->by_itself, 0) << "two trials of each are the same";
  EXPECT_FALSE(losses->IsNoise());
  MadeTrack silent(100, 200);
  EXPECT_FALSE(Compete({1}, silent).losses().has_value());
}

TEST(ContestTest, LeavesTimeForTwoPairsOfWholeRuns) {
  double left_seconds = 80;
  for (size_t trial = 0; trial < 4; ++trial) {
    EXPECT_NEAR(LongestWholeRun(left_seconds, trial), 10, 1e-9) << trial;
    left_seconds -= 20;
  }
  EXPECT_NEAR(LongestWholeRun(80, 4), 20, 1e-9) << "of another pair";
  EXPECT_NEAR(LongestWholeRun(40, 5), 20, 1e-9) << "as long as the other one of its pair";
}

}  // namespace
}  // namespace fullbore::tune
