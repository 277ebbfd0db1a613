#include "cli/output.h"

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>

#include "base/testing/scratch_directory.h"
#include "cli/subcommand.h"

namespace fullbore::cli {
namespace {

using testing::HasSubstr;

class FindRunTest : public testing::Test {
 protected:
  // Written in this order: the last is the newest.
  std::string Put(const std::string& id) {
    const std::string path = runs_.Write(id + ".fbr", "");
    std::filesystem::last_write_time(path, first_ + std::chrono::minutes(++written_));
    return path;
  }
  std::string Found(const std::string& text) const {
    const auto found = FindRun(runs_.path(), text);
    return found ? *found : found.error().text;
  }

  ScratchDirectory runs_;
  const std::filesystem::file_time_type first_ =
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  int written_ = 0;
};

TEST_F(FindRunTest, TakesTheNewestWhereNoneIsNamed) {
  Put("2026-11-20-train");
  const std::string newest = Put("2026-11-19-train");
  EXPECT_EQ(Found(""), newest);
  EXPECT_EQ(Found("last"), newest);
}

TEST_F(FindRunTest, TakesAnIdOrItsBeginning) {
  const std::string run = Put("2026-11-20-train"), other = Put("2026-11-21-train");
  EXPECT_EQ(Found("2026-11-20-train"), run);
  EXPECT_EQ(Found("2026-11-21"), other);
}

TEST_F(FindRunTest, TakesAnIdWithWhichAnotherBegins) {
  const std::string run = Put("train");
  Put("train-2");
  EXPECT_EQ(Found("train"), run);
}

TEST_F(FindRunTest, SaysThatABeginningMayMeanSeveral) {
  Put("2026-11-20-train");
  Put("2026-11-20-train-2");
  const auto found = FindRun(runs_.path(), "2026-11-20");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().text, "the ids of 2 runs begin with '2026-11-20'");
  EXPECT_THAT(found.error().hint, HasSubstr("2026-11-20-train-2"));
}

TEST_F(FindRunTest, TakesAPath) {
  ScratchDirectory elsewhere;
  const std::string path = elsewhere.Write("copied.fbr", "");
  EXPECT_EQ(Found(path), path);
}

TEST_F(FindRunTest, TakesANameAndOfSeveralTheNewest) {
  Put("2026-11-20-0915-win");
  const std::string second = Put("2026-11-20-0915-win-2"), other = Put("2026-11-21-0915-window");
  testing::internal::CaptureStderr();
  EXPECT_EQ(Found("win"), second);
  EXPECT_EQ(Found("win"), second);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "fullbore: 2 runs are named 'win'; this is the newest, 2026-11-20-0915-win-2\n");
  EXPECT_EQ(Found("window"), other);
  EXPECT_THAT(Found("wind"), HasSubstr("no run 'wind'")) << "a part of a name is none";
}

TEST_F(FindRunTest, ANameMayEndInANumber) {
  const std::string eight = Put("2026-11-20-0915-batch-8"), nine = Put("2026-11-20-0916-batch-9");
  EXPECT_EQ(Found("batch-8"), eight);
  EXPECT_EQ(Found("batch-9"), nine);
  EXPECT_THAT(Found("batch"), HasSubstr("no run 'batch'")) << "9 is no count";
  const std::string plain = Put("2026-11-20-0914-batch");
  Put("2026-11-20-0917-batch-10");
  EXPECT_EQ(Found("batch"), plain);
}

TEST_F(FindRunTest, AnIdComesBeforeAName) {
  const std::string id = Put("win");
  Put("2026-11-20-0915-win");
  EXPECT_EQ(Found("win"), id);
}

TEST(NameInIdTest, IsWhatStandsBehindTheTime) {
  EXPECT_EQ(NameInId("2026-11-20-0915-win"), "win");
  EXPECT_EQ(NameInId("2026-11-20-0915-win-2"), "win");
  EXPECT_EQ(NameInId("2026-11-20-win"), "2026-11-20-win");
  EXPECT_EQ(NameInId("job-123"), "job-123");
}

TEST_F(FindRunTest, SaysWhatThereIsWhereNoneHasThatName) {
  EXPECT_THAT(Found("train"), HasSubstr("no runs are recorded in "));
  Put("2026-11-20-train");
  const auto found = FindRun(runs_.path(), "test");
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().text, HasSubstr("no run 'test' in "));
  EXPECT_THAT(found.error().hint, HasSubstr("the newest is 2026-11-20-train"));
}

TEST_F(FindRunTest, FilesOfOtherKindsAreNoRuns) {
  runs_.Write("notes.txt", "");
  EXPECT_TRUE(RunFiles(runs_.path()).empty());
}

TEST(StatusOfTest, TellsAWrongCommandLineFromAFailure) {
  EXPECT_EQ(StatusOf({ErrorCode::kNotFound, "no run", ""}), kExitUsage);
  EXPECT_EQ(StatusOf({ErrorCode::kInvalidArgument, "no such flag", ""}), kExitUsage);
  EXPECT_EQ(StatusOf({ErrorCode::kUnavailable, "the disk is full", ""}), kExitFailure);
}

}  // namespace
}  // namespace fullbore::cli
