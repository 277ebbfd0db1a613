#include "record/alert_log.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/testing/scratch_directory.h"
#include "record/run_reader.h"
#include "record/run_writer.h"

namespace fullbore::record {
namespace {

namespace fs = std::filesystem;

class AlertLogTest : public ::testing::Test {
 protected:
  Result<RunWriter> Record() {
    return RunWriter::Open(path_, {"run-1", "train", {"python"}, "/", {}}, 1000, 5000);
  }

  static AlertRow ARow(const std::string& rule) {
    AlertRow row;
    row.stage = 1;
    row.rule = rule;
    row.since_ns = 1500;
    row.fired_ns = 2000;
    row.what = "it waits";
    row.details = "{}";
    return row;
  }

  ScratchDirectory directory_;
  const std::string path_ = directory_.path() + "/run-1.fbr";
};

TEST_F(AlertLogTest, WhatFiresIsWrittenOnceWhoeverWatches) {
  auto writer = Record();
  ASSERT_TRUE(writer.ok());
  const auto one = AlertLog::Of(path_), other = AlertLog::Of(path_);
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_TRUE(one->Fire(ARow("a"))->has_value());
  EXPECT_FALSE(other->Fire(ARow("a"))->has_value()) << "it fires already";
  EXPECT_TRUE(other->Fire(ARow("b"))->has_value());
  AlertRow over = ARow("a");
  over.resolved_ns = 3000;
  EXPECT_TRUE(*other->Resolve(over));
  EXPECT_FALSE(*one->Resolve(over)) << "it is over already";
  EXPECT_TRUE(one->Fire(ARow("a"))->has_value()) << "and may fire again";
  const auto rows = ReadAlerts(path_);
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ((*rows)[0].resolved_ns, 3000);
  EXPECT_EQ((*rows)[1].what, "it waits");
  EXPECT_FALSE((*rows)[1].resolved_ns);
}

TEST_F(AlertLogTest, TheRecorderGoesOnBesideIt) {
  auto writer = Record();
  ASSERT_TRUE(writer.ok());
  const auto log = AlertLog::Of(path_);
  for (int i = 0; i < 20; ++i) {
    writer->AppendMessage({1500 + i, Severity::kInfo, "test", "text"});
    EXPECT_TRUE(writer->Flush(2000 + i).ok());
    ASSERT_TRUE(log->Fire(ARow(std::to_string(i))).ok());
  }
  ASSERT_TRUE(writer->Close(5000, StageState::kEnded, 0, false).ok());
  EXPECT_EQ(ReadAlerts(path_)->size(), 20u);
  EXPECT_EQ(ReadRun(path_)->stages[0].messages.size(), 20u);
}

TEST_F(AlertLogTest, AnEndedRunStaysOneFile) {
  {
    auto writer = Record();
    ASSERT_TRUE(writer->Close(5000, StageState::kEnded, 1, false).ok());
  }
  const auto log = AlertLog::Of(path_);
  const auto id = log->Fire(ARow("a"));
  ASSERT_TRUE(id.ok() && *id);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path()), fs::directory_iterator()), 1);
  EXPECT_EQ(ReadRun(path_)->stages[0].exit_status, 1);
}

TEST_F(AlertLogTest, WhatIsOwedIsKeptWhoeverSettlesOrResolves) {
  auto writer = Record();
  ASSERT_TRUE(writer.ok());
  const auto log = AlertLog::Of(path_);
  AlertRow row = ARow("a");
  row.undelivered = {"firing 0", "firing 1"};
  const auto id = log->Fire(row);
  ASSERT_TRUE(id.ok() && *id);
  row.resolved_ns = 3000;
  row.undelivered = {"resolved 0"};
  ASSERT_TRUE(*log->Resolve(row));
  ASSERT_TRUE(log->Settle(**id, {"firing 1"}).ok());
  EXPECT_EQ(ReadAlerts(path_)->at(0).undelivered, (std::set<std::string>{"firing 0", "resolved 0"}));
}

TEST_F(AlertLogTest, ADeletedRunIsNotCreatedAnew) {
  { auto writer = Record(); }
  const auto log = AlertLog::Of(path_);
  ASSERT_TRUE(log.ok());
  for (const auto& entry : fs::directory_iterator(directory_.path())) fs::remove(entry);
  EXPECT_FALSE(log->Fire(ARow("a")).ok());
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_FALSE(AlertLog::Of(path_).ok());
}

TEST_F(AlertLogTest, ARunWithoutAlertsHasNone) {
  auto writer = Record();
  ASSERT_TRUE(writer->Flush(2000).ok());
  const auto rows = ReadAlerts(path_);
  ASSERT_TRUE(rows.ok());
  EXPECT_TRUE(rows->empty());
}

}  // namespace
}  // namespace fullbore::record
