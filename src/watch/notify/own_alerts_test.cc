#include "watch/notify/own_alerts.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/testing/scratch_directory.h"

namespace fullbore::watch {
namespace {

namespace fs = std::filesystem;

class OwnAlertsTest : public ::testing::Test {
 protected:
  OwnAlertsTest() { std::ofstream(run_file_) << "x"; }
  static record::AlertRow Row(int64_t stage, const std::string& rule, int64_t fired_ns) {
    record::AlertRow row;
    row.stage = stage;
    row.rule = rule;
    row.fired_ns = fired_ns;
    return row;
  }

  const ScratchDirectory directory_;
  const std::string run_file_ = directory_ / "run.fbr", notes_ = directory_ / "state/alerts";
  const OwnAlerts own_{notes_};
};

TEST_F(OwnAlertsTest, WhatIsNotedIsKnownToTheNextOneUntilItIsForgotten) {
  ASSERT_TRUE(own_.Note(run_file_, Row(1, "busy", 5)).ok());
  EXPECT_TRUE(OwnAlerts(notes_).Has(run_file_, Row(1, "busy", 5)));
  OwnAlerts(notes_).Forget(run_file_, Row(1, "busy", 5));
  EXPECT_FALSE(own_.Has(run_file_, Row(1, "busy", 5)));
}

TEST_F(OwnAlertsTest, NoOtherAlertAndNoOtherFileIsMeant) {
  ASSERT_TRUE(own_.Note(run_file_, Row(1, "busy", 5)).ok());
  EXPECT_FALSE(own_.Has(run_file_, Row(1, "busy", 6)));
  EXPECT_FALSE(own_.Has(run_file_, Row(2, "busy", 5)));
  EXPECT_FALSE(own_.Has(run_file_, Row(1, "../busy", 5)));
  fs::copy_file(run_file_, directory_ / "copy.fbr");
  EXPECT_FALSE(own_.Has(directory_ / "copy.fbr", Row(1, "busy", 5)));
}

TEST_F(OwnAlertsTest, ANoteOfLongAgoIsRemovedWhenTheNextIsMade) {
  ASSERT_TRUE(own_.Note(run_file_, Row(1, "busy", 5)).ok());
  for (const auto& entry : fs::directory_iterator(notes_))
    fs::last_write_time(entry, fs::file_time_type::clock::now() - std::chrono::hours(24 * 31));
  ASSERT_TRUE(own_.Note(run_file_, Row(1, "busy", 6)).ok());
  EXPECT_FALSE(own_.Has(run_file_, Row(1, "busy", 5)));
  EXPECT_TRUE(own_.Has(run_file_, Row(1, "busy", 6)));
}

TEST_F(OwnAlertsTest, WithoutADirectoryNothingIsKeptAndThatIsSaid) {
  const OwnAlerts nowhere("");
  EXPECT_FALSE(nowhere.Note(run_file_, Row(1, "busy", 5)).ok());
  EXPECT_FALSE(nowhere.Has(run_file_, Row(1, "busy", 5)));
}

}  // namespace
}  // namespace fullbore::watch
