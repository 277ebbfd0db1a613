#include "tune/trial/losses.h"

#include <gmock/gmock.h>

#include <limits>

namespace fullbore::tune {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Trial With(Settings settings, std::vector<double> losses) {
  Trial trial;
  trial.settings = std::move(settings);
  trial.first_losses = std::move(losses);
  return trial;
}

TEST(LossesTest, ADifferenceIsTheLargestOfAnyStep) {
  const auto said = CompareLosses(
      {With({}, {2, 1.5, 1}), With({{"precision", "bf16"}}, {2.002, 1.506, 1}), With({}, {2, 1.5, 1})});
  ASSERT_THAT(said, SizeIs(1));
  EXPECT_NEAR(said[0].largest, 0.004, 1e-9);
  EXPECT_EQ(said[0].by_itself, 0);
  EXPECT_FALSE(said[0].IsNoise());
  EXPECT_EQ(ToText(said[0]), "losses of the first 3 steps with precision=bf16 differ by at most 0.4 %");
}

TEST(LossesTest, ALossThatIsNoNumberAnyMoreIsSaidFirst) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const auto said = CompareLosses({With({}, {2, 1.5, 1}), With({{"precision", "fp16"}}, {2, 1.5, none})});
  ASSERT_THAT(said, SizeIs(1));
  EXPECT_EQ(said[0].diverges, 3);
  EXPECT_THAT(ToText(said[0]), HasSubstr("precision=fp16 the loss is not a number from step 3 on"));
}

TEST(LossesTest, AScriptThatDivergesByItselfSaysNothingOfASetting) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const auto said = CompareLosses({With({}, {2, none}), With({{"precision", "bf16"}}, {2, none})});
  ASSERT_THAT(said, SizeIs(1));
  EXPECT_FALSE(said[0].diverges);
}

TEST(LossesTest, AScriptThatDiffersFromItselfSaysNothingOfASetting) {
  const auto said =
      CompareLosses({With({}, {2, 1.5}), With({{"precision", "bf16"}}, {2.1, 1.5}), With({}, {1.9, 1.6})});
  ASSERT_THAT(said, SizeIs(1));
  EXPECT_TRUE(said[0].IsNoise());
  EXPECT_THAT(ToText(said[0]), HasSubstr("the script is not deterministic"));
}

TEST(LossesTest, WithoutASecondRunItIsNotKnownWhetherTheScriptIsDeterministic) {
  const auto said = CompareLosses({With({}, {2, 1}), With({{"tf32", true}}, {2, 1.01})});
  ASSERT_THAT(said, SizeIs(1));
  EXPECT_FALSE(said[0].by_itself.has_value());
  EXPECT_THAT(ToText(said[0]), HasSubstr("is not known"));
  EXPECT_EQ(ToText(CompareLosses({With({}, {2, 1}), With({{"tf32", true}}, {2, 1})}).at(0)),
            "losses of the first 2 steps with tf32=true: the same");
}

TEST(LossesTest, AnotherWayToLoadTheSameBatchesWillDoForAComparison) {
  const auto said = CompareLosses({With({}, {2, 1.5, 1}), With({{"num_workers", 1}}, {2, 1.4, 1}),
                                   With({{"num_workers", 2}, {"intraop_threads", 1}}, {2, 1.5, 1})});
  ASSERT_THAT(said, SizeIs(1));
  EXPECT_EQ(said[0].setting, "intraop_threads=1");
  EXPECT_EQ(said[0].largest, 0) << "beside the script as it is";
}

TEST(LossesTest, OtherSamplesAreNotCompared) {
  EXPECT_THAT(
      CompareLosses({With({}, {2, 1}), With({{"batch_size", 8}}, {1, 1}),
                     With({{"batch_size", 16}, {"precision", "bf16"}}, {1, 1}), With({{"tf32", true}}, {})}),
      IsEmpty());
  const auto said = CompareLosses({With({}, {2, 1}), With({{"batch_size", 8}}, {4, 4}),
                                   With({{"batch_size", 8}, {"precision", "bf16"}}, {4, 4.4})});
  ASSERT_THAT(said, SizeIs(1));
  EXPECT_NEAR(said[0].largest, 0.1, 1e-9) << "beside the same batch";
}

TEST(LossesTest, ALossNearZeroIsNotDividedBy) {
  const auto said = CompareLosses({With({}, {1, 0}), With({{"tf32", true}}, {1, 0.0001})});
  ASSERT_THAT(said, SizeIs(1));
  EXPECT_NEAR(said[0].largest, 0.01, 1e-9);
}

}  // namespace
}  // namespace fullbore::tune
