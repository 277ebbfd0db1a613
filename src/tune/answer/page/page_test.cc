// What the browser makes of the page is tested in tests/tune.
#include "tune/answer/page/page.h"

#include <gmock/gmock.h>

#include "tune/answer/page/curve.h"

namespace fullbore::tune {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Trial Measured(Settings settings, double rate, std::optional<int64_t> memory = std::nullopt) {
  Trial trial;
  trial.settings = std::move(settings);
  trial.rate = Rate{rate, 0.98 * rate, 1.02 * rate};
  trial.peak_memory_bytes = memory;
  return trial;
}

TEST(CurveTest, HasALineForEachCombinationOfTheOtherSettings) {
  const std::vector<Trial> trials = {Measured({{"batch", 64}, {"workers", 2}}, 200),
                                     Measured({{"batch", 32}, {"workers", 2}}, 100),
                                     Measured({{"batch", 64}, {"workers", 4}}, 300)};
  const auto curve = CurveOf(trials, {});
  ASSERT_TRUE(curve.has_value());
  EXPECT_EQ(curve->name, "batch");
  EXPECT_TRUE(curve->doubling);
  ASSERT_EQ(curve->lines.size(), 2u);
  EXPECT_EQ(curve->lines[0].others, "workers=2");
  EXPECT_EQ(curve->lines[0].points[0].trial, 1u) << "the least batch first";
  EXPECT_EQ(curve->lines[1].points.size(), 1u);
}

TEST(CurveTest, TheScriptAsItIsHasTheBatchThatItWasSeenToHave) {
  const std::vector<Trial> trials = {Measured({}, 100), Measured({{"batch_size", 64}}, 150)};
  Known known;
  EXPECT_FALSE(CurveOf(trials, known).has_value()) << "a single value is no curve";
  known.own["batch_size"] = 16;
  const auto curve = CurveOf(trials, known);
  ASSERT_TRUE(curve.has_value());
  ASSERT_EQ(curve->lines.size(), 1u);
  EXPECT_EQ(curve->lines[0].others, "");
  EXPECT_EQ(curve->lines[0].points[0].x, 16);
}

TEST(CurveTest, IsOverWorkersWhereTheBatchStayedTheSame) {
  const std::vector<Trial> trials = {Measured({{"batch_size", 8}, {"num_workers", 0}}, 100),
                                     Measured({{"batch_size", 8}, {"num_workers", 4}}, 300)};
  const auto curve = CurveOf(trials, {});
  ASSERT_TRUE(curve.has_value());
  EXPECT_EQ(curve->name, "num_workers");
  EXPECT_FALSE(curve->doubling) << "none is a number of workers";
}

TEST(CurveTest, IsNotThereForSwitchesAlone) {
  const std::vector<Trial> trials = {Measured({}, 100), Measured({{"pin_memory", true}}, 110)};
  EXPECT_FALSE(CurveOf(trials, {}).has_value());
}

Proof Proven(Settings settings) {
  Proof proof;
  proof.settings = std::move(settings);
  for (int i = 0; i < 2; ++i) proof.Add({{100, 100, 100}, {200, 200, 200}});
  return proof;
}

TEST(TunePageTest, EachSettingIsThereOnceAndAHopelessOneAsWell) {
  Trial hopeless = Measured({{"batch", 1}}, 10);
  hopeless.cut_short = true;
  const Answer answer = Conclude({}, {},
                                 {Measured({{"batch", 8}}, 100, 5), Measured({{"batch", 16}}, 200, 9),
                                  hopeless, Measured({{"batch", 8}}, 102, 6)},
                                 {Proven({{"batch", 16}})});
  const auto data = PageData(answer, {});
  EXPECT_EQ(data["trials"].size(), 4u);
  ASSERT_EQ(data["settings"].size(), 3u);
  EXPECT_EQ(data["settings"][0]["peak_memory_bytes"], 6);
  EXPECT_TRUE(data["settings"][0]["baseline"]);
  EXPECT_TRUE(data["settings"][1]["recommended"]);
  EXPECT_TRUE(data["settings"][0]["front"]) << "the slower one takes less memory";
  EXPECT_TRUE(data["settings"][2]["cut_short"]);
  EXPECT_FALSE(data["settings"][2]["front"]);
  EXPECT_EQ(data["trials"][0]["schema"], "fullbore.measure/1") << "as everywhere";
}

TEST(TunePageTest, TheCommandHasTheRecommendedValueAndNoSecret) {
  const Answer answer = Conclude({}, {}, {Measured({{"batch", 8}}, 100), Measured({{"batch", 16}}, 200)},
                                 {Proven({{"batch", 16}})});
  AnswerContext context;
  context.command = {"train", "--batch", "{batch}", "--api-key", "hunter2"};
  const auto data = PageData(answer, context);
  EXPECT_EQ(data["advice"]["command"], "train --batch 16 --api-key '***'");
  EXPECT_THAT(ToHtml(answer, context), Not(HasSubstr("hunter2")));
}

TEST(TunePageTest, AnEpochHasAPriceWhereAllOfItIsKnown) {
  const Answer answer = Conclude({}, {}, {Measured({{"batch", 8}}, 100), Measured({{"batch", 16}}, 200)},
                                 {Proven({{"batch", 16}})});
  AnswerContext context;
  context.price_per_hour = 3.6;
  EXPECT_FALSE(PageData(answer, context).contains("epoch"));
  context.known.epoch_samples = 1000;
  EXPECT_NEAR(PageData(answer, context)["epoch"]["before"].get<double>(), 0.01, 1e-9);
  EXPECT_NEAR(PageData(answer, context)["epoch"]["after"].get<double>(), 0.005, 1e-9);
}

TEST(TunePageTest, WhatIsNotProvenIsNamedAndNotAdvised) {
  const Answer answer = Conclude({}, {}, {Measured({{"batch", 8}}, 100), Measured({{"batch", 16}}, 200)}, {});
  const auto data = PageData(answer, {});
  EXPECT_TRUE(data["settings"][0]["recommended"]) << "the script as it is";
  ASSERT_EQ(data["grounds"].size(), 1u);
  EXPECT_THAT(data["grounds"][0].get<std::string>(),
              HasSubstr("Not proven: batch=16, 2.00x when it was tried"));
}

TEST(TunePageTest, NothingMeasuredIsAPageToo) {
  Trial crashed;
  crashed.outcome = Outcome::kCrashed;
  crashed.why = "exit status 1";
  const Answer answer = Conclude({}, {}, {crashed}, {});
  EXPECT_FALSE(PageData(answer, {}).contains("advice"));
  EXPECT_THAT(ToHtml(answer, {}), HasSubstr("<title>tune: nothing could be measured</title>"));
}

TEST(TunePageTest, NoSettingEndsTheScriptAroundItOrBecomesMarkup) {
  const std::string hostile = "</script><img src=x onerror=alert(1)>";
  const Answer answer =
      Conclude({}, {}, {Measured({{"name", hostile}}, 100), Measured({{"name", "b"}}, 50)}, {});
  AnswerContext context;
  context.command = {"train", hostile, "{name}"};
  EXPECT_THAT(ToHtml(answer, context), Not(HasSubstr("<img")));
}

}  // namespace
}  // namespace fullbore::tune
