#include "measure/collect/starter.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

namespace fullbore::collect {
namespace {

using Texts = std::vector<std::string>;

constexpr int kFailed = 3 << 8, kSucceeded = 0;  // as wait(2) has it

// The plugin's end of the socket, and ours.
class StarterTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    plugin_.reset(ends[0]);
    starter_.emplace(UniqueFd(ends[1]));
  }
  void Say(const Texts& texts) {
    const std::string packet = PacketOf(texts);
    ASSERT_EQ(send(plugin_.get(), packet.data(), packet.size(), 0), static_cast<ssize_t>(packet.size()));
  }
  Texts Hear() {
    char packet[4096];
    const ssize_t bytes = recv(plugin_.get(), packet, sizeof packet, 0);
    return TextsOf({packet, static_cast<size_t>(std::max<ssize_t>(bytes, 0))});
  }
  void Begin(const std::string& tasks) {
    Say({"begin", tasks, "/home/anna", "python", "train.py"});
    Say({"task", "4711", "SLURM_GPUS_ON_NODE=8"});
    ASSERT_TRUE(starter_->WaitForBeginning());
    ASSERT_TRUE(starter_->WaitForTask({{"FULLBORE_RUN", "mark"}}));
  }

  UniqueFd plugin_;
  std::optional<Starter> starter_;
};

TEST_F(StarterTest, TellsWhatIsGoingToRun) {
  Say({"begin", "2", "/home/anna", "python", "", "train.py"});
  const auto beginning = starter_->WaitForBeginning();
  ASSERT_TRUE(beginning);
  EXPECT_EQ(beginning->tasks, 2);
  EXPECT_EQ(beginning->directory, "/home/anna");
  EXPECT_EQ(beginning->command, (Texts{"python", "", "train.py"}));
}

TEST_F(StarterTest, SaysTheEnvironmentAndHearsOfTheFirstTask) {
  Say({"begin", "1", "/", "true"});
  Say({"task", "4711", "SLURM_GPUS_ON_NODE=8"});
  ASSERT_TRUE(starter_->WaitForBeginning());
  EXPECT_EQ(*starter_->WaitForTask({{"A", "1"}, {"B", "x=y"}}), 4711);
  EXPECT_EQ(Hear(), (Texts{"environment", "A=1", "B=x=y"}));
  EXPECT_STREQ(starter_->Variable("SLURM_GPUS_ON_NODE"), "8");
  EXPECT_EQ(starter_->Variable("SLURM_JOB_ID"), nullptr);
}

TEST_F(StarterTest, IsOverWhenAllTasksHaveEndedAndKnowsTheWorstEnd) {
  Begin("3");
  Say({"exit", std::to_string(kFailed)});
  Say({"exit", std::to_string(SIGKILL)});
  EXPECT_FALSE(starter_->IsOver());
  Say({"exit", std::to_string(kSucceeded)});
  EXPECT_TRUE(starter_->IsOver());
  EXPECT_EQ(starter_->status(), SIGKILL);
}

TEST_F(StarterTest, IsOverWithoutAStatusWhenTheStarterEndsBeforeItsTasks) {
  Begin("2");
  Say({"exit", "0"});
  plugin_.reset();
  EXPECT_TRUE(starter_->IsOver());
  EXPECT_EQ(starter_->status(), std::nullopt);
}

TEST_F(StarterTest, FailsWhereTheStarterWouldNotWait) {
  Say({"begin", "1", "/", "true"});
  ASSERT_TRUE(starter_->WaitForBeginning());
  plugin_.reset();
  EXPECT_EQ(starter_->WaitForTask({}).error().code, ErrorCode::kUnavailable);
}

TEST_F(StarterTest, TakesNothingForABeginningThatIsNone) {
  for (const Texts& texts :
       {Texts{"task", "1"}, Texts{"begin"}, Texts{"begin", "1", "/"}, Texts{"", "", "", ""}}) {
    Say(texts);
    EXPECT_FALSE(starter_->WaitForBeginning());
  }
}

TEST_F(StarterTest, PassesOverWhatItDoesNotKnow) {
  Begin("many");  // no number: one
  Say({"weather", "fine"});
  Say({"exit"});
  Say({"exit", "soon"});
  ASSERT_EQ(send(plugin_.get(), "no end", 6, 0), 6);
  EXPECT_FALSE(starter_->IsOver());
  Say({"exit", "0"});
  EXPECT_TRUE(starter_->IsOver());
}

TEST_F(StarterTest, SaysWhyNothingIsRecorded) {
  starter_->Refuse("the disk is full");
  EXPECT_EQ(Hear(), (Texts{"refused", "the disk is full"}));
}

}  // namespace
}  // namespace fullbore::collect
