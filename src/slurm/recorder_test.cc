extern "C" {
#include "slurm/recorder.h"
}

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/fd.h"

namespace fullbore {
namespace {

constexpr int kLongMs = 60'000;  // a hang, on any machine

class SlurmRecorderTest : public testing::Test {
 protected:
  // A shell with this script takes the recorder's part.
  void Start(std::string script, std::string program = "/bin/sh") {
    std::string flag = "-c", path = "PATH=/usr/bin:/bin";
    char* words[] = {program.data(), flag.data(), script.data(), nullptr};
    char* environment[] = {path.data(), nullptr};
    Launch launch{};
    launch.words = words;
    launch.environment = environment;
    launch.person = {getuid(), getgid(), nullptr, 0};
    socket_.reset(StartRecorder(&launch));
    ASSERT_TRUE(socket_.valid());
  }
  std::string Heard(int most_ms) {
    if (!Hear(socket_.get(), &packet_, NowMs() + most_ms)) return "nothing";
    return {packet_.bytes, packet_.used - 1};
  }

  UniqueFd socket_;
  Packet packet_{};
};

TEST_F(SlurmRecorderTest, IsHeard) {
  Start(R"(printf 'environment\0A=1\0' >&3)");
  EXPECT_EQ(Heard(kLongMs), std::string("environment\0A=1", 15));
}

TEST_F(SlurmRecorderTest, HasNothingOpenButItsSocketAndIsNoChildOfOurs) {
  Start("printf '%s %s\\0' \"$(ls /proc/$$/fd | tr '\\n' ' ')\" $PPID >&3");
  const std::string heard = Heard(kLongMs);
  EXPECT_THAT(heard, testing::StartsWith("0 1 2 3 "));
  EXPECT_THAT(heard, testing::Not(testing::EndsWith(" " + std::to_string(getpid()))));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(SlurmRecorderTest, ThatHangsIsNotWaitedFor) {
  Start("sleep 5");
  EXPECT_EQ(Heard(50), "nothing");
}

TEST_F(SlurmRecorderTest, ThatHangsBeforeItListensIsEndedByAnAlarm) {
  Start(R"(exec perl -e 'printf "%d\0", alarm 0' >&3)");
  const std::string seconds = Heard(kLongMs);
  EXPECT_GT(std::stoi(seconds), 0);
  EXPECT_LE(std::stoi(seconds), int{kAlarmSeconds});
}

TEST_F(SlurmRecorderTest, ThatDoesNotExistIsNotWaitedFor) {
  Start("", "/nowhere/fullbore");
  EXPECT_EQ(Heard(kLongMs), "nothing");
}

TEST_F(SlurmRecorderTest, ThatHasEndedIsSpokenToInVain) {
  Start("exit 0");
  EXPECT_EQ(Heard(kLongMs), "nothing");
  StartPacket(&packet_, "begin");
  EXPECT_FALSE(Say(socket_.get(), &packet_));
}

TEST_F(SlurmRecorderTest, SaysNothingWithoutAnEnd) {
  Start("printf environment >&3");
  EXPECT_EQ(Heard(kLongMs), "nothing");
}

TEST(PacketTest, LeavesOutWhatDoesNotFit) {
  Packet packet{};
  StartPacket(&packet, "begin");
  AddText(&packet, std::string(sizeof packet.bytes, 'x').c_str());
  AddText(&packet, "last");
  EXPECT_EQ(std::string(packet.bytes, packet.used), std::string("begin\0last\0", 11));
}

}  // namespace
}  // namespace fullbore
