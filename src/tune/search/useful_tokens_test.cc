#include "tune/search/useful_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tune/search/testing/surface.h"

namespace fullbore::tune {
namespace {

using diagnose::SampleTokens;
using testing::HasSubstr;

Request Of(const std::string& name, int64_t value) {
  Request request;
  request.settings = {{name, value}};
  return request;
}

// Packed samples go a third as fast, and hold four times as many tokens.
class Packing : public Laboratory {
 public:
  Trial Try(const Request& request) override {
    asked.push_back(request);
    Trial trial;
    trial.settings = request.settings;
    trial.predicted = request.predicted;
    trial.rate = IsPacked(request.settings) ? Rate{100, 99, 101} : Rate{300, 297, 303};
    trial.unit = unit;
    return trial;
  }
  std::optional<PairOfTrials> TryPair(const Request& before, const Request& after) override {
    return PairOfTrials{Try(before), Try(after)};
  }
  std::optional<Known> Learn(const Trial&) override {
    Known known;
    known.fetch_s = 0.5;
    return known;
  }
  bool IsOver() const override { return false; }
  static bool IsPacked(const Settings& settings) {
    const auto packed = settings.find("pack");
    return packed != settings.end() && packed->second == 1;
  }

  std::vector<Request> asked;
  std::string unit = std::string(kSamplesPerSecond);
};

std::optional<SampleTokens> Told(const Trial& trial) {
  if (Packing::IsPacked(trial.settings)) return SampleTokens{400, 400};
  return SampleTokens{256, trial.settings.empty() ? 100.0 : 110.0};  // by chance
}

TEST(UsefulTokensTest, AreCountedWhereASampleIsNotTheSame) {
  Packing inner;
  UsefulTokens tokens(inner, Told);
  const Trial own = tokens.Try({});
  EXPECT_DOUBLE_EQ(own.rate->mean, 30'000);
  EXPECT_EQ(own.unit, "useful tokens/s");
  EXPECT_DOUBLE_EQ(tokens.Try(Of("pack", 1)).rate->mean, 40'000) << "faster, though its samples are slower";
}

TEST(UsefulTokensTest, SamplesThatDifferByChanceAreTheSame) {
  Packing inner;
  UsefulTokens tokens(inner, Told);
  tokens.Try({});
  const auto pair = tokens.TryPair({}, Of("num_workers", 2));
  EXPECT_DOUBLE_EQ(pair->before.rate->mean, 30'000);
  EXPECT_DOUBLE_EQ(pair->after.rate->mean, 30'000) << "another drawing of the same is no gain";
}

TEST(UsefulTokensTest, WhatIsSaidBeforeATrialIsInItsOwnUnit) {
  Packing inner;
  UsefulTokens tokens(inner, Told);
  tokens.Try({});
  Request request = Of("num_workers", 2);
  request.predicted = 36'000;
  request.hopeless_below = 20'000;
  EXPECT_DOUBLE_EQ(*tokens.Try(request).predicted, 36'000);
  EXPECT_DOUBLE_EQ(*inner.asked.back().predicted, 360);
  EXPECT_DOUBLE_EQ(*inner.asked.back().hopeless_below, 200);
}

TEST(UsefulTokensTest, OtherSamplesAreNotEndedEarlyByTheRateOfThese) {
  Packing inner;
  UsefulTokens tokens(inner, Told);
  tokens.Try({});
  Request request = Of("pack", 1);
  request.hopeless_below = 20'000;
  tokens.Try(request);
  EXPECT_FALSE(inner.asked.back().hopeless_below.has_value());
}

TEST(UsefulTokensTest, AWorkerFetchesTokens) {
  Packing inner;
  UsefulTokens tokens(inner, Told);
  const auto known = tokens.Learn(tokens.Try({}));
  EXPECT_DOUBLE_EQ(known->fetch_s, 0.005);
  EXPECT_DOUBLE_EQ(*known->useful_tokens, 100);
}

TEST(UsefulTokensTest, AProgramWithoutAnyIsRefused) {
  Packing inner;
  UsefulTokens tokens(inner, [](const Trial&) { return std::nullopt; });
  const Trial trial = tokens.Try({});
  EXPECT_EQ(trial.outcome, Outcome::kRefused);
  EXPECT_FALSE(trial.ok());
  EXPECT_THAT(trial.why, HasSubstr("no tokens were seen"));
  EXPECT_THAT(trial.why, HasSubstr("--objective throughput"));
}

TEST(UsefulTokensTest, SoIsOneWhoseSamplesAreNotCounted) {
  Packing inner;
  inner.unit = std::string(kStepsPerSecond);
  UsefulTokens tokens(inner, Told);
  EXPECT_THAT(tokens.Try({}).why, HasSubstr("its samples could not be counted"));
}

// A record lost among thousands of short steps leaves them without samples: that is not what stands in the way.
TEST(UsefulTokensTest, NoTokensIsTheReasonWhereSamplesAreNotCountedEither) {
  Packing inner;
  inner.unit = std::string(kStepsPerSecond);
  UsefulTokens tokens(inner, [](const Trial&) { return std::nullopt; });
  EXPECT_THAT(tokens.Try({}).why, HasSubstr("no tokens were seen"));
}

TEST(UsefulTokensTest, PaddingIsNotComparedWithWhatMayBePadding) {
  Packing inner;
  UsefulTokens tokens(inner, [](const Trial& trial) {
    return Packing::IsPacked(trial.settings) ? SampleTokens{400, std::nullopt} : SampleTokens{256, 100};
  });
  tokens.Try({});
  EXPECT_THAT(tokens.Try(Of("pack", 1)).why, HasSubstr("nothing shows which of its tokens are padding"));
}

TEST(UsefulTokensTest, WhereNothingIsPaddingAllAreUseful) {
  Packing inner;
  UsefulTokens tokens(inner, [](const Trial&) { return SampleTokens{256, std::nullopt}; });
  EXPECT_DOUBLE_EQ(tokens.Try({}).rate->mean, 300 * 256);
}

TEST(UsefulTokensTest, ASearchFindsTheSameWorkersAsInSamples) {
  Surface surface;
  surface.workers = 1;
  surface.fetch_s = 0.004;
  Question question;
  question.knobs = {"num_workers"};
  SurfaceLaboratory of_samples(surface), of_tokens(surface);
  UsefulTokens tokens(of_tokens, [](const Trial&) { return SampleTokens{256, 100}; });
  const Answer in_samples = Search(question, of_samples);
  question.objective = Objective::kTokens;
  const Answer in_tokens = Search(question, tokens);
  ASSERT_TRUE(in_samples.recommended && in_tokens.recommended);
  EXPECT_EQ(in_tokens.recommended->settings, in_samples.recommended->settings);
  EXPECT_NE(in_tokens.recommended->settings, Settings()) << "one worker is too few here";
  EXPECT_NEAR(in_tokens.gain.expected, in_samples.gain.expected, 0.01);
  EXPECT_EQ(in_tokens.trials.size(), in_samples.trials.size());
}

}  // namespace
}  // namespace fullbore::tune
