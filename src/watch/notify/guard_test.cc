#include "watch/notify/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_directory.h"
#include "record/alert_log.h"
#include "watch/alert/rules_file.h"
#include "watch/testing/live_writer.h"

namespace fullbore::watch {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(GuardTest, OnlyWhatItsUserHasNotedIsOwed) {
  const ScratchDirectory directory;
  testing::LiveWriter writer(directory.path(), "a", 0.6);
  writer.Seconds(5);
  const std::string run_file = directory / "a.fbr";
  const OwnAlerts own(directory / "notes");
  record::AlertRow row{0, 1, "w", 1, 2, std::nullopt, "x", "{}", {"firing 0 webhook:http://127.0.0.1:9/***"}};
  ASSERT_TRUE(record::AlertLog::Of(run_file)->Fire(row).ok());
  const auto rules = ParseRules("[[alert]]\nname = \"w\"\nrun = \"failed\"", "test");
  ASSERT_TRUE(rules.ok());
  Guard guard(
      *rules, [](const std::string&) {}, std::make_shared<Courier>(), own);
  EXPECT_FALSE(guard.IsOwed(run_file));
  ASSERT_TRUE(own.Note(run_file, row).ok());
  EXPECT_TRUE(guard.IsOwed(run_file));
}

TEST(GuardTest, TheHistoryOfAReceivedRunIsShown) {
  const ScratchDirectory directory;
  testing::LiveWriter writer(directory.path(), "a", 0.6);
  writer.Seconds(5);
  const std::string run_file = directory / "a.fbr";
  record::AlertRow row{0, 1, "w", 1, 2, std::nullopt, "x", "{}", {"firing 0 webhook:http://127.0.0.1:9/***"}};
  ASSERT_TRUE(record::AlertLog::Of(run_file)->Fire(row).ok());
  row.resolved_ns = 3;
  ASSERT_TRUE(record::AlertLog::Of(run_file)->Resolve(row).ok());
  const auto rules = ParseRules(
      "[[alert]]\nname = \"w\"\nrun = \"failed\"\nnotify = [\"webhook:http://127.0.0.1:9/x\"]", "test");
  ASSERT_TRUE(rules.ok());
  const auto courier = std::make_shared<Courier>();
  Guard guard(
      *rules, [](const std::string&) {}, courier, OwnAlerts(directory / "notes"));
  LiveRun run(run_file);
  ASSERT_TRUE(run.LookAtWindow().ok());
  guard.OnLook("a", run, /*over=*/false);
  EXPECT_THAT(guard.State()["history"], SizeIs(1));
  EXPECT_THAT(guard.State()["firing"], IsEmpty());
}

}  // namespace
}  // namespace fullbore::watch
