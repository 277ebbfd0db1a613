#include "measure/collect/run_name.h"

#include <gmock/gmock.h>

namespace fullbore::collect {
namespace {

using ::testing::MatchesRegex;

TEST(RunNameTest, ARunIsCalledAsItsScript) {
  EXPECT_EQ(NameOf({"python", "-u", "train.py", "--data", "other.py"}), "train");
  EXPECT_EQ(NameOf({"/usr/bin/bash", "jobs/night.sh"}), "night");
  EXPECT_EQ(NameOf({"./build/train-gpt"}), "train-gpt");
}

TEST(RunNameTest, AModuleIsCalledByItsLastPart) {
  EXPECT_EQ(NameOf({"python", "-m", "project.train", "--lr", "1"}), "train");
}

TEST(RunNameTest, ALauncherGivesItsScriptsName) {
  EXPECT_EQ(NameOf({"torchrun", "--nproc-per-node", "2", "train.py"}), "train");
  EXPECT_EQ(NameOf({"python", "-m", "torch.distributed.run", "train.py"}), "train");
}

TEST(RunNameTest, ANameIsFitForAFile) {
  EXPECT_EQ(NameOf({"python", "my train (2).py"}), "mytrain2");
  EXPECT_EQ(NameOf({"python", "../...py"}), "run") << "nothing is left of it";
  EXPECT_EQ(NameOf({}), "run");
}

TEST(RunNameTest, AnIdBeginsWithTheTimeSoThatRunsAreInOrder) {
  EXPECT_THAT(NameWithTime("train"), MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{4}-train"));
}

}  // namespace
}  // namespace fullbore::collect
