#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Share;
using testing::ACommandWithoutTraining;
using testing::ATraining;
using testing::Finds;
using ::testing::Not;

TEST(HealthyTest, IsRaisedWhereNothingCostsMuch) {
  const Diagnosis diagnosis = Diagnose(ATraining().InEachStep(Share::kDataWait, 4));
  ASSERT_EQ(diagnosis.findings.size(), 1u);
  EXPECT_THAT(diagnosis, Finds("healthy"));
}

TEST(HealthyTest, IsNotRaisedBesideAWarning) {
  EXPECT_THAT(Diagnose(ATraining().InEachStep(Share::kDataWait, 8)), Not(Finds("healthy")));
}

TEST(HealthyTest, IsNotRaisedWithoutTraining) {
  EXPECT_THAT(Diagnose(ACommandWithoutTraining(60)), Not(Finds("healthy")));
}

}  // namespace
}  // namespace fullbore::diagnose
