#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Share;
using testing::Advises;
using testing::ARun;
using testing::ATrace;
using testing::FindingIn;
using testing::Finds;
using ::testing::HasSubstr;
using ::testing::Not;

// A device of whose work so many percent were done for the second time.
ARun ComputingAgain(int64_t percent) {
  ARun run = ATrace();
  record::Noticed& noticed = run.rank().noticed;
  noticed.computed_ns = 1'000'000;
  noticed.recomputed_ns = 10'000 * percent;
  return run;
}

TEST(RecomputationTest, IsRaisedByATenthOfTheStepAndPromisesNothing) {
  const Diagnosis diagnosis = Diagnose(ComputingAgain(25));
  const Finding* finding = FindingIn(diagnosis, "recomputation");
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->title, HasSubstr("25 % of the device's work"));
  EXPECT_DOUBLE_EQ(finding->share, 0.25);
  EXPECT_THAT(*finding, Advises("checkpoint fewer blocks, if memory is free"));
  EXPECT_EQ(finding->method, "") << "whether the activations fit is not known";
  EXPECT_EQ(diagnosis.findings.front().id, "healthy") << "it may be wanted";
}

TEST(RecomputationTest, CountsOnlyWhileTheDeviceComputes) {
  const Diagnosis diagnosis = Diagnose(ComputingAgain(25).InEachStep(Share::kDataWait, 100));
  EXPECT_DOUBLE_EQ(FindingIn(diagnosis, "recomputation")->share, 0.125);
}

TEST(RecomputationTest, IsNotRaisedByALittleOrByNone) {
  EXPECT_THAT(Diagnose(ComputingAgain(9)), Not(Finds("recomputation")));
  EXPECT_THAT(Diagnose(ATrace()), Not(Finds("recomputation")));
}

}  // namespace
}  // namespace fullbore::diagnose
