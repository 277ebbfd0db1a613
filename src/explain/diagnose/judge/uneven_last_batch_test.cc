#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using ::testing::Not;

TEST(UnevenLastBatchTest, IsRaisedByRanksWithDifferentBatches) {
  const Diagnosis diagnosis = Diagnose(ATraining().Beside(ATraining().WithSamples(99, 7)));
  ASSERT_THAT(diagnosis, Finds("uneven-last-batch"));
  EXPECT_THAT(FindingIn(diagnosis, "uneven-last-batch")->title, ::testing::HasSubstr("(7 and 32 samples)"));
}

TEST(UnevenLastBatchTest, IsNotRaisedByALastBatchThatIsSmallerOnAllRanks) {
  EXPECT_THAT(Diagnose(ATraining().WithSamples(99, 7).Beside(ATraining().WithSamples(99, 7))),
              Not(Finds("uneven-last-batch")));
}

TEST(UnevenLastBatchTest, IsNotRaisedWhereTheSizeCouldNotBeSeen) {
  EXPECT_THAT(Diagnose(ATraining().Beside(ATraining().WithSamples(99, 0))), Not(Finds("uneven-last-batch")));
}

TEST(UnevenLastBatchTest, IsNotRaisedByOneRank) {
  EXPECT_THAT(Diagnose(ATraining().WithSamples(99, 7)), Not(Finds("uneven-last-batch")));
}

}  // namespace
}  // namespace fullbore::diagnose
