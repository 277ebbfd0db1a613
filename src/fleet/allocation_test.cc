#include "fleet/allocation.h"

#include <gmock/gmock.h>

namespace fullbore::fleet {
namespace {

using ::testing::IsEmpty;

constexpr int64_t kSecond = 1'000'000'000;

// As sacct of Slurm 22.05 prints a job that was queued again and completed.
constexpr char kQueuedAgain[] =
    "4711|anna|1764385200|1764385212|12|REQUEUED|billing=8,cpu=8,gres/gpu:h100=2,gres/gpu=2,node=1\n"
    "4711|anna|1764385214|1764385300|86|COMPLETED|billing=8,cpu=8,gres/gpu:h100=2,gres/gpu=2,node=1\n";

TEST(AllocationTest, EachStartOfAJobIsOne) {
  const auto found = AllocationsIn(kQueuedAgain, "4711", "anna");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].begin_unix_ns, 1764385200 * kSecond);
  EXPECT_EQ(found[0].end_unix_ns, 1764385212 * kSecond);
  EXPECT_EQ(found[0].devices, 2);
  EXPECT_EQ(found[0].state, "REQUEUED");
  EXPECT_EQ(found[1].state, "COMPLETED");
}

TEST(AllocationTest, OneThatGoesOnEndsWhenItWasAsked) {
  const auto found = AllocationsIn("7|anna|1000|Unknown|30|RUNNING|cpu=1,node=1\n", "7", "anna");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].end_unix_ns, 1030 * kSecond);
  EXPECT_EQ(found[0].devices, 0);
}

TEST(AllocationTest, AJobThatWaitsHasNone) {
  EXPECT_THAT(AllocationsIn("7|anna|Unknown|Unknown|0|PENDING|\n", "7", ""), IsEmpty());
  EXPECT_THAT(AllocationsIn("7|anna|None|1000|0|CANCELLED by 1000|\n", "7", ""), IsEmpty());
}

TEST(AllocationTest, OtherJobsAndUsersArePassedOver) {
  EXPECT_THAT(AllocationsIn(kQueuedAgain, "471", "anna"), IsEmpty());
  EXPECT_THAT(AllocationsIn(kQueuedAgain, "4711", "bert"), IsEmpty());
  EXPECT_EQ(AllocationsIn(kQueuedAgain, "4711", "").size(), 2u);
}

TEST(AllocationTest, AStateThatNobodyKnowsIsKept) {
  EXPECT_EQ(AllocationsIn("7||5|9|4|DREAMING|cpu=1", "7", "").at(0).state, "DREAMING");
}

TEST(AllocationTest, ATextThatEndsAnywhereIsNoMoreThanItSays) {
  const std::string_view all = kQueuedAgain;
  for (size_t length = 0; length < all.size(); ++length)
    EXPECT_LE(AllocationsIn(all.substr(0, length), "4711", "anna").size(), 2u);
}

TEST(AllocationTest, NumbersBeyondAllReasonAreNotBelieved) {
  EXPECT_THAT(AllocationsIn("7||-5|9|4|COMPLETED|cpu=1", "7", ""), IsEmpty());
  EXPECT_THAT(AllocationsIn("7||9223372036854775807|9|4|COMPLETED|cpu=1", "7", ""), IsEmpty());
  const auto found = AllocationsIn("7||9|5|0|COMPLETED|gres/gpu=99999999999", "7", "");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].end_unix_ns, found[0].begin_unix_ns);
  EXPECT_LE(found[0].devices, 1 << 20);
}

}  // namespace
}  // namespace fullbore::fleet
