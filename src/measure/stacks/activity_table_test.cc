#include "measure/stacks/activity_table.h"

#include <gtest/gtest.h>

namespace fullbore::stacks {
namespace {

using record::Activity;
using record::HostOther;
using record::Share;

const ActivityTable& Table() { return ActivityTable::Get(); }

TEST(ActivityTableTest, TheLongestModuleThatMatchesSaysThePurpose) {
  EXPECT_EQ(Table().PurposeOf("torch.utils.tensorboard.writer"), Activity::kLogging);
  EXPECT_EQ(Table().PurposeOf("torch.utils.data.dataset"), Activity::kDataPreparation);
  EXPECT_EQ(Table().PurposeOf("torch.nn.modules.linear"), Activity::kUnknown);
  EXPECT_EQ(Table().PurposeOf("logginglike"), Activity::kUnknown);
}

TEST(ActivityTableTest, AStarMarksWhatReceivesFromAnotherThreadOrProcess) {
  const auto get = Table().WaitOf("queue", "get"), put = Table().WaitOf("queue", "put");
  ASSERT_TRUE(get && put);
  EXPECT_EQ(get->activity, Activity::kQueue);
  EXPECT_TRUE(get->receives);
  EXPECT_FALSE(put->receives);
  EXPECT_FALSE(Table().WaitOf("queue", "qsize"));
}

TEST(ActivityTableTest, TwoStarsMarkAnotherProcessAndAnAnswerIsNotToldFromAnUpload) {
  EXPECT_TRUE(Table().WaitOf("multiprocessing.queues", "get")->receives);
  EXPECT_EQ(Table().WaitOf("multiprocessing.connection", "recv")->activity, Activity::kQueue);
  EXPECT_FALSE(Table().WaitOf("http.client", "getresponse")->receives);
  EXPECT_EQ(Table().WaitOf("http.client", "send")->activity, Activity::kNetwork);
}

TEST(ActivityTableTest, AStarAloneStandsForAllOfAPackage) {
  EXPECT_EQ(Table().WaitOf("urllib3.connection", "connect")->activity, Activity::kNetwork);
  EXPECT_EQ(Table().CallOf("cv2.resize"), Activity::kDataPreparation);
  EXPECT_EQ(Table().CallOf("time.sleep"), Activity::kSleep);
  EXPECT_EQ(Table().CallOf("time.time"), Activity::kUnknown);
}

TEST(ActivityTableTest, PhasesAreSharesOrPartsOfWhatTheHostDoesBesides) {
  EXPECT_EQ(Table().PhaseOf("torch.nn.modules.module", "_call_impl")->share, Share::kForward);
  EXPECT_EQ(Table().PhaseOf("torch._tensor", "backward")->share, Share::kBackward);
  EXPECT_FALSE(Table().PhaseOf("torch._tensor", "__repr__"));
  EXPECT_EQ(Table().PhaseOf("torch.serialization", "save")->part, HostOther::kCheckpoint);
  EXPECT_EQ(Table().PhaseOfMethod("item")->share, Share::kSync);
  EXPECT_EQ(Table().PhaseOfUserFunction("validate_epoch")->part, HostOther::kValidation);
  EXPECT_FALSE(Table().PhaseOfUserFunction("train"));
}

}  // namespace
}  // namespace fullbore::stacks
