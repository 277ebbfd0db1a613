#include "tune/proof/claim.h"

#include <gmock/gmock.h>

namespace fullbore::tune {
namespace {

using testing::HasSubstr;

Trial Made(double rate, std::vector<double> losses) {
  Trial trial;
  trial.rate = Rate{rate, rate * 0.999, rate * 1.001};
  trial.first_losses = std::move(losses);
  return trial;
}

// Three pairs at a steady rate.
Contest ContestOf(double baseline, double candidate, const std::vector<double>& before,
                  const std::vector<double>& after) {
  Contest contest;
  contest.ending = Ending::kDecided;
  for (int i = 0; i < 3; ++i) {
    const Trial one = Made(baseline * (1 + 0.001 * i), before),
                other = Made(candidate * (1 + 0.001 * i), after);
    contest.trials.push_back({Side::kBaseline, one});
    contest.trials.push_back({Side::kCandidate, other});
    contest.proof.Add({*one.rate, *other.rate});
  }
  return contest;
}

TEST(ClaimTest, HoldsWhereTheCandidateIsFasterWithTheSameLosses) {
  const Claim claim = ClaimOf(ContestOf(100, 200, {2, 1}, {2, 1}));
  EXPECT_TRUE(claim.holds) << claim.why;
  EXPECT_EQ(claim.same_losses, true);
}

TEST(ClaimTest, IsRefusedWhereNothingIsFaster) {
  EXPECT_FALSE(ClaimOf(ContestOf(100, 100, {2, 1}, {2, 1})).holds);
  EXPECT_THAT(ClaimOf(ContestOf(200, 100, {2, 1}, {2, 1})).why, HasSubstr("slower"));
}

TEST(ClaimTest, IsRefusedWhereTheLossesChange) {
  const Claim claim = ClaimOf(ContestOf(100, 200, {2, 1}, {2, 1.1}));
  EXPECT_FALSE(claim.holds);
  EXPECT_EQ(claim.same_losses, false);
  EXPECT_THAT(claim.why, HasSubstr("does not compute the same"));
}

TEST(ClaimTest, IsRefusedWhereTheLossesAreNotSeen) {
  const Claim claim = ClaimOf(ContestOf(100, 200, {}, {}));
  EXPECT_FALSE(claim.holds);
  EXPECT_FALSE(claim.same_losses.has_value());
  EXPECT_TRUE(ToJson(claim)["same_losses"].is_null());
}

TEST(ClaimTest, IsRefusedWhereACommandFails) {
  Contest contest;
  contest.ending = Ending::kFailed;
  EXPECT_THAT(ClaimOf(contest).why, HasSubstr("could not be measured"));
}

}  // namespace
}  // namespace fullbore::tune
