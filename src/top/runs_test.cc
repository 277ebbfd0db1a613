#include "top/runs.h"

#include <gtest/gtest.h>

#include "base/testing/scratch_directory.h"
#include "watch/runs_folder.h"
#include "watch/testing/live_writer.h"

namespace fullbore::top {
namespace {

TEST(RunsTest, ARunHasBeenRecordedSinceItsBeginNotForAMinute) {
  const ScratchDirectory directory;
  watch::testing::LiveWriter writer(directory.path(), "a", 0.6);
  writer.Seconds(600);
  watch::RunsFolder folder({directory.path()}, {});
  folder.Tick(MonotonicNs(), WallNs());
  std::vector<top::Run> runs = RunsOf(folder);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].running_ns, 600 * kNsPerSecond);
  EXPECT_EQ(runs[0].step_times_ns.size(), 60U) << "the window is still the last minute";

  writer.Seconds(60);
  folder.Tick(MonotonicNs() + 100 * kNsPerSecond, WallNs());
  runs = RunsOf(folder);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].running_ns, 660 * kNsPerSecond);
}

}  // namespace
}  // namespace fullbore::top
