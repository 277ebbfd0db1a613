#include "measure/stacks/classes.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_directory.h"

namespace fullbore::stacks {
namespace {

using record::Activity;
using record::HostOther;
using record::Share;

constexpr char kScript[] =
    "import time\n"                        // 1
    "def train(loader):\n"                 // 2
    "    for batch in batches(loader):\n"  // 3
    "        out = model(batch)\n"         // 4
    "        loss = weigh(out)\n"          // 5
    "        loss.backward()\n"            // 6
    "        optimizer.step()\n"           // 7
    "        total += loss.item()\n"       // 8
    "        time.sleep(0.1)\n"            // 9
    "        item = q.get()\n"             // 10
    "def batches(loader):\n"               // 11
    "    yield decode(1)\n"                // 12
    "def validate():\n"                    // 13
    "    model(1)\n"                       // 14
    "def report():\n"                      // 15
    "    log.info(1)\n"                    // 16
    "class Cart:\n"                        // 17
    "    def reset(self):\n"               // 18
    "        self.speed = 0\n"             // 19
    "    def step(self, action):\n"        // 20
    "        self.speed += action\n"       // 21
    "class Timer:\n"                       // 22
    "    def step(self):\n"                // 23
    "        self.steps += 1\n";           // 24

class ClassesTest : public testing::Test {
 protected:
  ClassesTest() : root_(std::move(*TemporaryDirectory::Make())), sources_(root_.path(), "/w") {
    std::filesystem::create_directory(root_.path() + "/w");
    std::ofstream(root_.path() + "/w/train.py") << kScript;
    thread_.samples = {
        {User("train", 4), kForward}, {User("train", 6), kBackward}, {User("train", 7), kOptimizer}};
  }

  uint32_t Add(const std::string& module, const std::string& function, const std::string& file, int line) {
    profile_.frames.push_back({function, file, line, module, module.empty()});
    return static_cast<uint32_t>(profile_.frames.size() - 1);
  }
  uint32_t User(const std::string& function, int line) { return Add("", function, "/w/train.py", line); }
  uint32_t Library(const std::string& module, const std::string& function) {
    return Add(module, function, "/lib/python3.11/site-packages/" + module + ".py", 1);
  }
  Seen Read(const Stack& stack, bool on_device = true) {
    return TrainingLoop(profile_, thread_, sources_, on_device).Read(stack);
  }

  Profile profile_;
  const uint32_t kForward = Library("torch.nn.modules.module", "_call_impl");
  const uint32_t kBackward = Library("torch._tensor", "backward");
  const uint32_t kOptimizer = Library("torch.optim.optimizer", "wrapper");
  Thread thread_;
  TemporaryDirectory root_;
  Sources sources_;
};

TEST_F(ClassesTest, TheOutermostPhaseOnTheStackCounts) {
  EXPECT_EQ(Read({User("train", 6), kBackward, kForward}).phase.share, Share::kBackward);
  EXPECT_EQ(
      Read({User("train", 3), Library("torch.utils.data.dataloader", "__next__"), kForward}).phase.share,
      Share::kDataWait);
}

TEST_F(ClassesTest, AnOptimizerMayBeGivenThePassAsAClosure) {
  EXPECT_EQ(Read({User("train", 7), kOptimizer, User("closure", 6), kBackward}).phase.share,
            Share::kBackward);
}

TEST_F(ClassesTest, ACollectiveWithinAPassIsNoComputation) {
  const Seen seen =
      Read({User("train", 4), kForward, Library("torch.distributed.distributed_c10d", "broadcast")});
  EXPECT_EQ(seen.phase.share, Share::kCommExposed);
}

TEST_F(ClassesTest, WhatTheLoopsOwnIteratorDoesIsAWaitForData) {
  const Seen seen = Read({User("train", 3), User("batches", 12), Library("PIL.Image", "open")});
  EXPECT_EQ(seen.phase.share, Share::kDataWait);
  EXPECT_TRUE(seen.in_iterator);
  EXPECT_EQ(seen.activity, Activity::kDataPreparation);
  EXPECT_EQ(seen.where->line, 12);
}

TEST_F(ClassesTest, ReceivingInTheLoopsBodyIsAWaitForData) {
  const Seen seen = Read({User("train", 10), Library("queue", "get"), Library("threading", "wait")});
  EXPECT_EQ(seen.phase.share, Share::kDataWait);
  EXPECT_FALSE(seen.in_iterator);
  EXPECT_EQ(seen.activity, Activity::kQueue);
}

TEST_F(ClassesTest, ASleepInTheBodyIsTheLoopsOwn) {
  const Seen seen = Read({User("train", 9)});
  EXPECT_EQ(seen.phase.share, Share::kHostOther);
  EXPECT_EQ(seen.activity, Activity::kSleep);
}

TEST_F(ClassesTest, ItemOfATensorIsASynchronisation) {
  EXPECT_EQ(Read({User("train", 8)}).phase.share, Share::kSync);
}

TEST_F(ClassesTest, WithoutADeviceNothingWaitsForIt) {
  EXPECT_EQ(Read({User("train", 8)}, false).phase.share, Share::kHostOther);
}

TEST_F(ClassesTest, AnObjectThatOneStepsAndResetsIsAnEnvironment) {
  const Seen seen = Read({User("train", 5), User("step", 21)});
  EXPECT_EQ(seen.phase.share, Share::kHostOther);
  EXPECT_EQ(seen.activity, Activity::kEnvironment);
  EXPECT_EQ(Read({User("train", 5), User("step", 24)}).activity, Activity::kUnknown);
}

TEST_F(ClassesTest, WhatRunsBetweenTheForwardAndTheBackwardPassIsTheLoss) {
  EXPECT_EQ(Read({User("train", 5), User("weigh", 99)}).phase.share, Share::kForward);
}

TEST_F(ClassesTest, AForwardPassWithinAFunctionThatValidatesIsValidation) {
  EXPECT_EQ(Read({User("validate", 14), kForward}).phase, (Phase{Share::kHostOther, HostOther::kValidation}));
}

TEST_F(ClassesTest, AFunctionWithinWhichTheTrainingStepsDoesNotValidate) {
  thread_.samples.push_back({User("validate", 14), User("train", 6), kBackward});
  EXPECT_EQ(Read({User("validate", 14), kForward}).phase.share, Share::kForward);
}

TEST_F(ClassesTest, TheOnlyForwardPassIsTheTrainingsWhateverItsName) {
  thread_.samples = {{User("train", 4), User("evaluate_actions", 14), kForward},
                     {User("train", 6), kBackward}};
  EXPECT_EQ(Read({User("train", 4), User("evaluate_actions", 14), kForward}).phase.share, Share::kForward);
}

TEST_F(ClassesTest, ALoggerThatWaitsForItsLockIsLogging) {
  const Seen seen = Read(
      {User("train", 9), User("report", 16), Library("logging", "info"), Library("threading", "acquire")});
  EXPECT_EQ(seen.phase.share, Share::kHostOther);
  EXPECT_EQ(seen.activity, Activity::kLogging);
}

TEST_F(ClassesTest, AThreadWithoutAnyPassDoesNotTrain) {
  Thread other;
  other.samples = {{User("main", 9)}};
  EXPECT_FALSE(TrainingLoop(profile_, other, sources_, false).trains());
}

}  // namespace
}  // namespace fullbore::stacks
