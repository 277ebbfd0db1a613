#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/testing/scratch_directory.h"
#include "record/metrics.h"
#include "record/run_edit.h"
#include "record/run_reader.h"
#include "record/run_writer.h"

namespace fullbore::record {
namespace {

namespace fs = std::filesystem;

class RunFileTest : public ::testing::Test {
 protected:
  Result<RunWriter> Open(const std::string& stage) {
    return RunWriter::Open(path_, {"run-1", stage, {"python", "train.py"}, "/home/u", {{"team", "vision"}}},
                           1000, 5000);
  }

  static Step StepAt(int64_t index) {
    Step step;
    step.index = index;
    step.end_ns = 2000 + index * 100;
    step.wall_ns = 100;
    step.samples = 32;
    step.share_ns[Index(Share::kDataWait)] = 40;
    step.share_ns[Index(Share::kForward)] = 60;
    return step;
  }

  // A small but complete run: a stage with readings, steps, a rank with a loader, a process and a message.
  void WriteSmallRun() {
    auto writer = Open("train");
    ASSERT_TRUE(writer.ok());
    for (int64_t t = 0; t < 100; ++t) {
      writer->AppendReading(1, {"cpu_utilization", "ratio", {}, 0.001}, 2000 + t,
                            0.001 * static_cast<double>(t));
      if (t % 2) writer->AppendReading(1, {"load1", "count", {}, 0}, 2000 + t, 1.0 / 3);
    }
    for (int64_t i = 0; i < 300; ++i) writer->AppendStep(0, StepAt(i));
    StepWindow window;
    window.begin_ns = 2000;
    window.end_ns = 32'000;
    window.steps = 300;
    writer->AppendWindow(0, window);
    RankInfo rank;
    rank.facts["torch"] = "\"2.13.0\"";
    rank.hot_lines.push_back({Share::kDataWait, "train.py", 7, "main", "for x in loader:", 12});
    rank.hot_lines.push_back({Share::kHostOther, "trainer.py", 9, "train", "", 5, HostOther::kUnnamed,
                              Activity::kLogging, true, "ultralytics"});
    rank.hot_lines.back().slow_samples = 4;
    rank.loaders.emplace_back().where = "train.py:3";
    rank.loaders.back().start_method = "forkserver";
    rank.loaders.back().wait_ns.Add(40);
    writer->PutRank(rank);
    writer->PutProcess({42, 1, "trainer", 0, "python train.py", 1000, 0});
    writer->AppendMessage({1500, Severity::kWarning, "nvml", "no driver"});
    writer->PutMachineFact("cores", "2");
    ASSERT_TRUE(writer->Close(40'000, StageState::kEnded, 3, true).ok());
  }

  ScratchDirectory directory_;
  const fs::path path_ = directory_ / "run.fbr";
};

TEST_F(RunFileTest, OnlyItsUserCanReadAndWriteIt) {
  auto writer = Open("train");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Flush(2000).ok());
  for (const char* suffix : {"", "-wal", "-shm"}) {
    EXPECT_EQ(fs::status(path_.string() + suffix).permissions(),
              fs::perms::owner_read | fs::perms::owner_write)
        << suffix;
  }
}

TEST_F(RunFileTest, IsNotWrittenThroughALink) {
  const std::string victim = directory_.Write("victim", "");
  fs::create_symlink(victim, path_);
  EXPECT_FALSE(Open("train").ok());
  EXPECT_EQ(fs::file_size(victim), 0u);
}

TEST_F(RunFileTest, IsNotWrittenWhereEverybodyCouldExchangeTheFilesBesideIt) {
  WriteSmallRun();
  fs::permissions(path_.parent_path(), fs::perms::all);
  EXPECT_FALSE(Open("again").ok());
  EXPECT_FALSE(SetNote(path_, "a note").ok());
  EXPECT_TRUE(ReadRun(path_).ok());
  fs::permissions(path_.parent_path(), fs::perms::owner_all);
  EXPECT_TRUE(SetNote(path_, "a note").ok());
}

TEST_F(RunFileTest, TakesNothingFromAnEarlierLog) {
  WriteSmallRun();
  const std::string copy = directory_ / "copy.fbr";
  {
    auto writer = Open("secret");
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->Flush(50'000).ok());
    fs::copy_file(path_.string() + "-wal", copy + "-wal");
  }
  auto fresh = RunWriter::Open(copy, {"run-2", "train", {}, "/", {}}, 1000, 5000);
  ASSERT_TRUE(fresh.ok()) << fresh.error().text;
  ASSERT_TRUE(fresh->Close(2000, StageState::kEnded, 0, false).ok());
  const auto read = ReadRun(copy);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->stages.size(), 1u);
}

TEST_F(RunFileTest, ReadsBackEverythingThatWasRecorded) {
  WriteSmallRun();
  const auto run = ReadRun(path_);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->id, "run-1");
  EXPECT_EQ(run->wall_offset_ns, 4000);
  EXPECT_EQ(run->tags.at("team"), "vision");
  EXPECT_EQ(run->machine.at("cores"), "2");
  ASSERT_EQ(run->stages.size(), 1u);
  const Stage& stage = run->stages[0];
  EXPECT_EQ(stage.command, (std::vector<std::string>{"python", "train.py"}));
  EXPECT_EQ(stage.state, StageState::kEnded);
  EXPECT_EQ(stage.exit_status, 3);
  EXPECT_TRUE(stage.out_of_memory);
  ASSERT_EQ(stage.ranks.size(), 1u);
  const RankInfo& rank = stage.ranks[0];
  ASSERT_EQ(rank.steps.size(), 300u);
  EXPECT_EQ(rank.steps[299].end_ns, StepAt(299).end_ns);
  EXPECT_EQ(rank.steps[299].share_ns, StepAt(299).share_ns);
  EXPECT_EQ(rank.windows.at(0).steps, 300);
  EXPECT_EQ(rank.facts.at("torch"), "\"2.13.0\"");
  EXPECT_EQ(rank.hot_lines.at(0).share, Share::kDataWait);
  EXPECT_EQ(rank.hot_lines.at(0).activity, Activity::kUnknown);
  EXPECT_EQ(rank.hot_lines.at(1).activity, Activity::kLogging);
  EXPECT_TRUE(rank.hot_lines.at(1).in_iterator);
  EXPECT_EQ(rank.hot_lines.at(0).slow_samples, 0);
  EXPECT_EQ(rank.hot_lines.at(1).slow_samples, 4);
  EXPECT_EQ(rank.hot_lines.at(1).library, "ultralytics");
  EXPECT_EQ(rank.loaders.at(0).wait_ns.count(), 1u);
  EXPECT_EQ(rank.loaders.at(0).where, "train.py:3");
  EXPECT_EQ(rank.loaders.at(0).start_method, "forkserver");
  EXPECT_EQ(stage.processes.at(0).role, "trainer");
  EXPECT_EQ(stage.messages.at(0).text, "no driver");
}

TEST_F(RunFileTest, TheNewestDeviceWindowOfEachRankIsReadBack) {
  WriteSmallRun();
  {
    auto writer = Open("again");
    ASSERT_TRUE(writer.ok());
    writer->AppendStep(1, StepAt(0));
    writer->AppendStep(0, StepAt(0));
    writer->AppendDeviceWindow({1, 32, 4, "of rank 1"});
    writer->AppendDeviceWindow({0, 64, 3, "newest"});
    writer->AppendDeviceWindow({0, 32, 4, "older"});
    ASSERT_TRUE(writer->Close(50'000, StageState::kEnded, 0, false).ok());
  }

  const auto run = ReadRun(path_);

  ASSERT_TRUE(run.ok());
  EXPECT_TRUE(run->stages[0].device_windows.empty());
  const auto& windows = run->stages[1].device_windows;
  ASSERT_EQ(windows.size(), 2U);
  EXPECT_EQ(windows[0].rank, 0);
  EXPECT_EQ(windows[0].first_step, 64);
  EXPECT_EQ(windows[0].steps, 3);
  EXPECT_EQ(windows[0].trace, "newest");
  EXPECT_EQ(windows[1].trace, "of rank 1");
}

TEST_F(RunFileTest, UnknownReadingsAreAbsentNotZero) {
  WriteSmallRun();
  const auto run = ReadRun(path_);
  ASSERT_TRUE(run.ok());
  ASSERT_EQ(run->stages[0].series.size(), 2u);
  const Series& every_tick = run->stages[0].series[0];
  const Series& every_other = run->stages[0].series[1];
  ASSERT_EQ(every_tick.readings.size(), 100u);
  EXPECT_NEAR(every_tick.readings[99].value, 0.099, 1e-12);
  ASSERT_EQ(every_other.readings.size(), 50u);
  EXPECT_EQ(every_other.readings[0].value, 1.0 / 3);  // resolution 0: exact
}

TEST_F(RunFileTest, IsReadableWhileItIsWritten) {
  auto writer = Open("train");
  ASSERT_TRUE(writer.ok());
  writer->AppendStep(0, StepAt(0));
  ASSERT_TRUE(writer->Flush(3000).ok());
  writer->AppendStep(0, StepAt(1));
  ASSERT_TRUE(writer->Flush(4000).ok());
  const auto run = ReadRun(path_);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->stages[0].state, StageState::kRunning);
  EXPECT_EQ(run->stages[0].end_ns, 4000);
  EXPECT_EQ(run->stages[0].ranks.at(0).steps.size(), 2u);
}

// What a full disk that copies on write does to a page of the map, done here by taking the page away.
TEST_F(RunFileTest, AnIndexThatCannotBeWrittenCostsOneAttempt) {
  auto writer = Open("train");
  ASSERT_TRUE(writer.ok());
  writer->AppendStep(0, StepAt(0));
  ASSERT_TRUE(writer->Flush(2000).ok());
  sigset_t all, before;  // as the recorder blocks them, to pass on what is sent
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  ASSERT_EQ(truncate((path_.string() + "-shm").c_str(), 0), 0);
  writer->AppendStep(0, StepAt(1));
  const auto failed = writer->Flush(3000);
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().text.find("index"), std::string::npos) << failed.error().text;
  writer->AppendStep(0, StepAt(2));
  ASSERT_TRUE(writer->Flush(4000).ok());
  ASSERT_TRUE(writer->Close(5000, StageState::kEnded, 0, false).ok());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  const auto run = ReadRun(path_);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->stages[0].ranks.at(0).steps.size(), 3u);
}

TEST_F(RunFileTest, StagesOfOneRunKeepTheirOwnSeriesAndNamesakesAreNumbered) {
  for (const char* name : {"prepare", "train", "train"}) {
    auto writer = Open(name);
    ASSERT_TRUE(writer.ok());
    writer->AppendReading(0, {"load1", "count", {}, 0}, 2000, 1);
    ASSERT_TRUE(writer->Close(3000, StageState::kEnded, 0, false).ok());
  }
  const auto run = ReadRun(path_);
  ASSERT_TRUE(run.ok());
  ASSERT_EQ(run->stages.size(), 3u);
  EXPECT_EQ(run->stages[2].name, "train-2");
  for (const Stage& stage : run->stages) EXPECT_EQ(stage.series.size(), 1u);
}

TEST_F(RunFileTest, ASeriesWithAnOldNameIsFoundUnderItsCurrentName) {
  auto writer = Open("train");
  ASSERT_TRUE(writer.ok());
  for (const char* stage : {"read", "user", "collate", "decode"}) {
    const Labels labels = {{"loader", "1"}, {"rank", "0"}, {"stage", stage}};
    writer->AppendReading(0, {"loader_blocked", "threads", labels, 0}, 2000, 1);
  }
  ASSERT_TRUE(writer->Close(3000, StageState::kEnded, 0, false).ok());
  const auto run = ReadRun(path_);
  ASSERT_TRUE(run.ok());
  std::set<std::string> names;
  for (const Series& series : run->stages[0].series) names.insert(LabelledName(series.key));
  EXPECT_EQ(names, (std::set<std::string>{
                       "loader_blocked_core{loader=1,rank=0}", "loader_blocked_room{loader=1,rank=0}",
                       "loader_blocked_user{loader=1,rank=0}",
                       "loader_blocked{loader=1,rank=0,stage=decode}"}));  // means none of the three
}

TEST_F(RunFileTest, RecoversFromTruncationAtEveryLengthOrSaysWhy) {
  WriteSmallRun();
  std::ifstream in(path_, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const fs::path cut = directory_ / "cut.fbr";
  size_t opened = 0;
  for (size_t length = 0; length < bytes.size(); length += 331) {
    std::ofstream(cut, std::ios::binary | std::ios::trunc) << bytes.substr(0, length);
    const auto run = ReadRun(cut);
    if (run.ok()) {
      ++opened;
      EXPECT_EQ(run->id, "run-1");
    } else {
      EXPECT_FALSE(run.error().text.empty());
    }
  }
  EXPECT_GT(opened, 0u);  // the later cuts leave the first tables whole
}

TEST_F(RunFileTest, AForeignFileIsReportedAsSuch) {
  std::ofstream(path_) << "not a database at all, but long enough to look at";
  const auto run = ReadRun(path_);
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(ReadRun(directory_ / "missing.fbr").error().code, ErrorCode::kNotFound);
}

TEST_F(RunFileTest, ADirectoryThatCannotBeWrittenIsAnErrorAtOnce) {
  const auto writer = RunWriter::Open("/proc/nowhere/run.fbr", {"x", "train", {}, "", {}}, 0, 0);
  EXPECT_FALSE(writer.ok());
}

}  // namespace
}  // namespace fullbore::record
