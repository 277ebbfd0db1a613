#include "watch/runs_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/fd.h"
#include "base/testing/scratch_directory.h"
#include "record/alert_log.h"
#include "watch/testing/live_writer.h"

namespace fullbore::watch {
namespace {

using testing::LiveWriter;

class RunsFolderTest : public ::testing::Test {
 protected:
  std::string Directory(const std::string& name) {
    const std::string path = directory_ / name;
    std::filesystem::create_directory(path);
    return path;
  }
  // Each a second after the one before.
  void Tick(RunsFolder& folder) { folder.Tick(now_ns_ += kNsPerSecond, WallNs() + later_ns_); }

  static bool FireIn(const std::string& run_file) {
    record::AlertRow row;
    row.stage = 1;
    row.rule = "waits";
    return record::AlertLog::Of(run_file)->Fire(row).ok();
  }

  ScratchDirectory directory_;
  int64_t now_ns_ = MonotonicNs(), later_ns_ = 0;
};

TEST_F(RunsFolderTest, FollowsARunFromItsFirstSecondsToItsEnd) {
  const std::string runs = Directory("runs");
  // Pauses follow the time that looks really take, which these seconds are not: the shortest, on any machine.
  RunsFolder folder({runs}, {.of_a_core = 1e6});
  Tick(folder);
  EXPECT_TRUE(folder.runs().empty());

  LiveWriter writer(runs, "a", 0.6);
  writer.Seconds(5);
  Tick(folder);
  ASSERT_EQ(folder.runs().size(), 1u);
  EXPECT_EQ(folder.runs()[0].second->state, RunState::kRunning);
  ASSERT_NE(folder.Live("a"), nullptr);
  EXPECT_EQ(folder.Live("a")->steps(), 50);

  writer.Seconds(70);
  for (int i = 0; i < 20; ++i) Tick(folder);
  const LiveRun& live = *folder.Live("a");
  EXPECT_EQ(live.steps(), 750);
  EXPECT_EQ(live.of_window().steps, 600) << "the last minute";
  EXPECT_EQ(live.of_all().steps, 750);
  EXPECT_NEAR(live.of_window().shares.at("data_wait"), 0.6, 1e-9);
  EXPECT_EQ(folder.Find("a")->summary.steps, 750);
  EXPECT_EQ(folder.Find("a")->judgement->finding, "input-bound");

  bool over = false;
  folder.on_look = [&](const std::string& name, const LiveRun& run, bool is_over) {
    EXPECT_EQ(name, "a");
    over = is_over && run.ended();
  };
  writer.End(3);
  Tick(folder);
  EXPECT_TRUE(over);
  EXPECT_EQ(folder.Live("a"), nullptr);
  EXPECT_EQ(folder.Find("a")->state, RunState::kEnded);
  EXPECT_EQ(folder.Find("a")->summary.stages[0].exit_status, 3);
}

TEST_F(RunsFolderTest, ARunThatEndedUnseenWhileAnAlertFiredIsLookedAtOnce) {
  const std::string runs = Directory("runs");
  LiveWriter(runs, "a", 0.6).Seconds(5).End();
  LiveWriter(runs, "b", 0.6).Seconds(5).End();
  ASSERT_TRUE(FireIn(runs + "/b.fbr"));
  RunsFolder folder({runs}, {});
  std::vector<std::string> over;
  folder.on_look = [&](const std::string& name, const LiveRun& run, bool is_over) {
    EXPECT_TRUE(is_over && run.ended());
    over.push_back(name);
  };
  folder.is_owed = [&](const std::string& run_file) { return run_file == runs + "/b.fbr"; };
  for (int i = 0; i < 20; ++i) Tick(folder);
  EXPECT_EQ(over, std::vector<std::string>{"b"});
}

TEST_F(RunsFolderTest, ARunThatTakesTooLongToJudgeIsGivenUpAndTheOthersAreJudged) {
  const std::string runs = Directory("runs");
  LiveWriter(runs, "a", 0.6).Seconds(30).End();
  LiveWriter(runs, "b", 0.6).Seconds(30).End();
  RunsFolder folder({runs}, {.judge_limit_ns = -1});  // over before it begins
  for (int i = 0; i < 30; ++i) Tick(folder);
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(folder.Find(name)->judgement);
    EXPECT_EQ(folder.Find(name)->judgement->finding, "");
    EXPECT_NE(folder.Find(name)->judgement->verdict.find("could not be judged in"), std::string::npos);
  }
}

TEST_F(RunsFolderTest, WhoWritesAnAlertIntoARunThatWasCutOffIsNotItsRecorder) {
  const std::string runs = Directory("runs");
  LiveWriter writer(runs, "a", 0.6);
  writer.Seconds(5);
  RunIndex index(runs);
  index.Update(WallNs() + 2 * kSilentNs);
  ASSERT_EQ(index.runs().at("a").state, RunState::kCutOff);
  ASSERT_TRUE(FireIn(runs + "/a.fbr"));
  index.Update(WallNs());
  EXPECT_EQ(index.runs().at("a").state, RunState::kCutOff);
  index.Save();
  RunIndex later(runs);
  later.Update(WallNs());
  EXPECT_EQ(later.runs().at("a").state, RunState::kCutOff);
  writer.Seconds(1);
  later.Update(WallNs());
  EXPECT_EQ(later.runs().at("a").state, RunState::kRunning);
}

TEST_F(RunsFolderTest, ARunWhoseRecorderIsGoneIsCutOff) {
  const std::string runs = Directory("runs");
  LiveWriter writer(runs, "a", 0.6);
  writer.Seconds(5);
  RunsFolder folder({runs}, {});
  Tick(folder);
  int over = 0;
  folder.on_look = [&](const std::string&, const LiveRun& run, bool is_over) {
    over += is_over && !run.ended();
  };
  later_ns_ = 2 * kSilentNs;
  for (int i = 0; i < 20; ++i) Tick(folder);
  EXPECT_EQ(over, 1);
  EXPECT_EQ(folder.Live("a"), nullptr);
  EXPECT_EQ(folder.Find("a")->state, RunState::kCutOff);
}

TEST_F(RunsFolderTest, AnIndexThatIsFarTooLongIsMadeAnew) {
  const std::string runs = Directory("runs");
  LiveWriter(runs, "a", 0.6).Seconds(5).End();
  {
    RunIndex index(runs);
    index.Update(WallNs());
    index.Save();
  }
  ASSERT_EQ(RunIndex(runs).runs().size(), 1u);
  std::filesystem::resize_file(runs + "/.index", uint64_t{1} << 30);
  EXPECT_TRUE(RunIndex(runs).runs().empty());
}

TEST_F(RunsFolderTest, TheIndexKnowsWhatWasReadAndJudged) {
  const std::string runs = Directory("runs");
  LiveWriter(runs, "a", 0.6).Seconds(30).End();
  {
    RunsFolder folder({runs}, {});
    Tick(folder);
    Tick(folder);
    ASSERT_TRUE(folder.Find("a")->judgement);
  }
  const RunIndex index(runs);
  ASSERT_TRUE(index.runs().contains("a"));
  const KnownRun& run = index.runs().at("a");
  EXPECT_EQ(run.summary.steps, 300);
  EXPECT_EQ(run.summary.tags.at("lr"), "3e-4");
  EXPECT_EQ(run.judgement->finding, "input-bound");
  EXPECT_EQ(run.judgement->sparkline.size(), 30u);

  std::filesystem::remove(runs + "/a.fbr");
  RunsFolder folder({runs}, {});
  Tick(folder);
  EXPECT_TRUE(folder.runs().empty());
}

TEST_F(RunsFolderTest, WhoKeepsNoIndexLeavesTheDirectoryAsItIs) {
  const std::string runs = Directory("runs");
  LiveWriter(runs, "a", 0.6).Seconds(3).End();
  {
    RunsFolder folder({runs}, {}, KeepsIndex::kNo);
    Tick(folder);
    Tick(folder);
    EXPECT_TRUE(folder.Find("a")->judgement);
  }
  EXPECT_FALSE(std::filesystem::exists(runs + "/.index"));
}

TEST_F(RunsFolderTest, NoIndexIsKeptWhereEverybodyCouldLeadItElsewhere) {
  const std::string runs = Directory("runs");
  LiveWriter(runs, "a", 0.6).Seconds(3).End();
  std::filesystem::permissions(runs, std::filesystem::perms::all);
  { RunsFolder({runs}, {}).Tick(now_ns_, WallNs()); }
  EXPECT_FALSE(std::filesystem::exists(runs + "/.index"));
  std::filesystem::permissions(runs, std::filesystem::perms::owner_all);
  { RunsFolder({runs}, {}).Tick(now_ns_, WallNs()); }
  EXPECT_TRUE(std::filesystem::exists(runs + "/.index"));
}

TEST_F(RunsFolderTest, AnIndexThatIsCutOffAnywhereLosesNothing) {
  const std::string runs = Directory("runs");
  LiveWriter(runs, "a", 0.6).Seconds(3).End();
  LiveWriter(runs, "b", 0.1).Seconds(3).End();
  { RunsFolder({runs}, {}).Tick(now_ns_, WallNs()); }
  const std::string file = runs + "/.index";
  const auto whole = ReadFile(file);
  ASSERT_TRUE(whole.ok());
  for (size_t bytes = 0; bytes < whole->size(); bytes += 61) {
    directory_.Write("runs/.index", whole->substr(0, bytes));
    RunsFolder folder({runs}, {.of_a_core_for_ended = 0});
    Tick(folder);
    ASSERT_EQ(folder.runs().size(), 2u) << bytes;
  }
}

TEST_F(RunsFolderTest, TwoDirectoriesMayHoldTheSameName) {
  const std::string ours = Directory("ours"), theirs = Directory("theirs");
  LiveWriter(ours, "a", 0.6).Seconds(3).End();
  LiveWriter(theirs, "a", 0.6).Seconds(4).End();
  RunsFolder folder({ours, theirs}, {});
  Tick(folder);
  EXPECT_EQ(folder.Find("a")->summary.steps, 30);
  EXPECT_EQ(folder.Find("a~2")->summary.steps, 40);
}

TEST_F(RunsFolderTest, WhatIsNoRunFileIsLeftOut) {
  const std::string runs = Directory("runs");
  directory_.Write("runs/garbage.fbr", "not a run");
  directory_.Write("runs/.index", "not an index\n{\"name\": 3}\n");
  RunsFolder folder({runs, directory_ / "missing"}, {});
  for (int i = 0; i < 12; ++i) Tick(folder);
  EXPECT_TRUE(folder.runs().empty());
}

}  // namespace
}  // namespace fullbore::watch
