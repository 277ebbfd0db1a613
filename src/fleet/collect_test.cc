#include "fleet/collect.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/testing/scratch_directory.h"
#include "record/run_writer.h"

namespace fullbore::fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class CollectTest : public ::testing::Test {
 protected:
  void WriteRun(const std::string& name, const std::string& id, int64_t end_ns = 5000) {
    const std::string path = directory_ / name;
    fs::create_directories(fs::path(path).parent_path());
    auto writer = record::RunWriter::Open(path, {id, "train", {"python", "train.py"}, "/", {}}, 1000, 2000);
    ASSERT_TRUE(writer.ok()) << ToString(writer.error());
    ASSERT_TRUE(writer->Close(end_ns, record::StageState::kEnded, 0, false).ok());
  }
  Collected CollectAll(int64_t (*wall_ns)() = WallNs) {
    auto store = Store::Open(directory_ / "fleet.db");
    EXPECT_TRUE(store.ok());
    const auto collected = Collect({{directory_.path()}, 2, {}, wall_ns}, *store);
    EXPECT_TRUE(collected.ok());
    return collected.ok() ? *collected : Collected{};
  }

  ScratchDirectory directory_;
};

TEST_F(CollectTest, RunsAreFoundAtAnyDepthAndAFolderOfMachinesIsOne) {
  WriteRun("a/.fullbore/runs/one.fbr", "one");
  WriteRun("b/two.fbr/host-1.fbr", "two");
  WriteRun("b/two.fbr/host-2.fbr", "two");
  std::ofstream(directory_ / "b/notes.txt") << "no run";
  const auto runs = FindRuns({directory_.path(), directory_ / "a"})->runs;
  ASSERT_THAT(runs, SizeIs(2));
  EXPECT_THAT(runs[0], HasSubstr("one.fbr"));
  EXPECT_TRUE(runs[1].ends_with("b/two.fbr"));
  EXPECT_EQ(CollectAll().changed, 2u);
}

TEST_F(CollectTest, OnlyWhatChangedIsReadAgain) {
  WriteRun("one.fbr", "one");
  WriteRun("two.fbr", "two");
  EXPECT_EQ(CollectAll().changed, 2u);
  EXPECT_EQ(CollectAll().changed, 0u);
  WriteRun("two.fbr", "two", 9000);  // another stage
  const Collected again = CollectAll();
  EXPECT_EQ(again.runs, 2u);
  EXPECT_EQ(again.changed, 1u);
  EXPECT_THAT(*Store::OpenForReading(directory_ / "fleet.db")->Runs({}), SizeIs(2));
}

// Its file never changes: what says that it is over is the time alone.
TEST_F(CollectTest, ARunIsLookedAtAgainUntilItHasEndedOrIsKnownToBeCutOff) {
  constexpr auto in_a_minute = [] { return WallNs() + 60 * kNsPerSecond; };
  ASSERT_TRUE(record::RunWriter::Open(directory_ / "one.fbr",
                                      {"one", "train", {"python", "train.py"}, "/", {}}, 1000, 2000)
                  .ok());
  EXPECT_EQ(CollectAll().changed, 1u);
  EXPECT_EQ(CollectAll().changed, 1u) << "it goes on";
  EXPECT_EQ(CollectAll(in_a_minute).changed, 1u) << "it was cut off";
  EXPECT_EQ(CollectAll(in_a_minute).changed, 0u);
  EXPECT_THAT(*Store::OpenForReading(directory_ / "fleet.db")->Seen(), SizeIs(1))
      << "one row, not one for each look";
}

TEST_F(CollectTest, WhatIsNoRunIsSaidAndTheOthersAreRead) {
  WriteRun("one.fbr", "one");
  std::ofstream(directory_ / "broken.fbr") << "cut";
  const Collected collected = CollectAll();
  EXPECT_EQ(collected.changed, 1u);
  ASSERT_THAT(collected.unread, SizeIs(1));
  EXPECT_THAT(collected.unread[0], HasSubstr("broken.fbr"));
}

TEST_F(CollectTest, ALinkLeadsNowhere) {
  WriteRun("real/one.fbr", "one");
  fs::create_directory_symlink(directory_ / "real", directory_ / "link");
  fs::create_symlink(directory_ / "real/one.fbr", directory_ / "linked.fbr");
  EXPECT_THAT(FindRuns({directory_.path()})->runs, SizeIs(1));
  EXPECT_FALSE(FindRuns({directory_ / "missing"}).ok());
}

}  // namespace
}  // namespace fullbore::fleet
