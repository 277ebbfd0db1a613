#include "cli/runs_removal.h"

#include <gmock/gmock.h>

#include <deque>

#include "base/clock.h"
#include "watch/removal.h"

namespace fullbore::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kDayNs = 24 * 3600 * kNsPerSecond;

// Runs of one command, of a megabyte each, the first of them today and each other a day older than the one before.
class RunsRemovalTest : public ::testing::Test {
 protected:
  watch::KnownRun& Add(const std::string& name = "") {
    watch::KnownRun& run = runs_.emplace_back();
    const auto day = static_cast<int64_t>(runs_.size()) - 1;
    run.name = run.summary.id = name.empty() ? "2026-11-" + std::to_string(30 - day) + "-0915-train" : name;
    run.summary.stages.emplace_back().command = {"python", "train.py"};
    run.summary.wall_begin_ns = kNowNs - day * kDayNs;
    run.summary.bytes = 1'000'000;
    return run;
  }
  std::vector<std::string> Beyond(const RemovalFlags& flags) {
    std::vector<serve::NamedRun> all;
    for (const watch::KnownRun& run : runs_) all.emplace_back(run.name, &run);
    std::vector<std::string> names;
    for (const auto& [name, run] : ThoseBeyond(flags, all, kNowNs + 1)) names.push_back(name.substr(8, 2));
    return names;
  }
  static RemovalFlags Limits() {
    RemovalFlags flags;
    flags.prune = true;
    return flags;
  }

  static constexpr int64_t kNowNs = 1000 * kDayNs;
  std::deque<watch::KnownRun> runs_;
};

TEST_F(RunsRemovalTest, EachLimitTakesTheOldest) {
  for (int i = 0; i < 5; ++i) Add();
  RemovalFlags older = Limits(), newest = Limits(), size = Limits();
  older.older_than = "3d";
  newest.keep_newest = 4;
  size.at_most_bytes = 2'500'000;
  EXPECT_THAT(Beyond(older), ElementsAre("26", "27"));
  EXPECT_THAT(Beyond(newest), ElementsAre("26"));
  EXPECT_THAT(Beyond(size), ElementsAre("26", "27", "28"));
  EXPECT_THAT(Beyond(Limits()), IsEmpty());
}

TEST_F(RunsRemovalTest, WhatIsProtectedStaysAndTakesItsRoom) {
  for (int i = 0; i < 6; ++i) Add();
  runs_[2].summary.note = "the best one";
  runs_[3].summary.tags[watch::kPinTag] = "yes";
  runs_[4].state = watch::RunState::kRunning;
  runs_[5].name = "2026-11-25-0915-win";  // as `run --name win` makes it
  RemovalFlags all = Limits(), size = Limits();
  all.keep_newest = 0;
  size.at_most_bytes = 5'000'000;
  EXPECT_THAT(Beyond(all), ElementsAre("29", "30"));
  EXPECT_THAT(Beyond(size), ElementsAre("29"));
}

TEST_F(RunsRemovalTest, ARunWhoseIdAPersonChoseIsNamed) {
  EXPECT_EQ(WhySpared(Add("baseline")), "you named it");
  EXPECT_EQ(WhySpared(Add()), "");
  EXPECT_EQ(WhySpared(Add("2026-11-21-0915-train-2")), "") << "the second of that minute";
}

TEST_F(RunsRemovalTest, APruneWithoutALimitIsRefused) {
  EXPECT_FALSE(JudgeRemoval(Limits()));
  RemovalFlags wrong = Limits();
  wrong.older_than = "soon";
  EXPECT_FALSE(JudgeRemoval(wrong));
  wrong.older_than = "30";
  EXPECT_FALSE(JudgeRemoval(wrong)) << "thirty seconds, where somebody meant days";
  wrong.older_than = "30d";
  EXPECT_TRUE(JudgeRemoval(wrong));
}

}  // namespace
}  // namespace fullbore::cli
