extern "C" {
#include "slurm/settings.h"
}

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace fullbore {
namespace {

using testing::StrEq;

class SettingsTest : public testing::Test {
 protected:
  // What is wrong; empty where nothing is.
  std::string Read(std::vector<std::string> words) {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    const char* wrong = ReadSettings(static_cast<int>(pointers.size()), pointers.data(), &settings_);
    return wrong ? wrong : "";
  }

  Settings settings_{};
};

TEST_F(SettingsTest, AreOffUnlessTheSiteSaysOtherwise) {
  EXPECT_EQ(Read({}), "");
  EXPECT_EQ(settings_.mode, kModeOff);
  EXPECT_THAT(settings_.directory, StrEq(""));
  EXPECT_THAT(settings_.binary, StrEq("/usr/bin/fullbore"));
  EXPECT_EQ(settings_.wait_ms, 80);
}

TEST_F(SettingsTest, AreTheWordsOfPlugstackConf) {
  EXPECT_EQ(Read({"default=on", "dir=/shared/runs", "binary=/opt/fullbore", "wait_ms=250"}), "");
  EXPECT_EQ(settings_.mode, kModeOn);
  EXPECT_THAT(settings_.directory, StrEq("/shared/runs"));
  EXPECT_THAT(settings_.binary, StrEq("/opt/fullbore"));
  EXPECT_EQ(settings_.wait_ms, 250);
}

TEST_F(SettingsTest, SayWhichWordIsWrong) {
  for (const char* wrong : {"default=", "default=yes", "dir=runs", "dir=", "binary=fullbore", "wait_ms=",
                            "wait_ms=0", "wait_ms=1s", "wait_ms=100000", "directory=/runs", "default", ""}) {
    EXPECT_EQ(Read({"default=on", wrong, "dir=/runs"}), wrong);
  }
  const std::string long_path = "dir=/" + std::string(PATH_MAX, 'x');
  EXPECT_EQ(Read({long_path}), long_path);
}

TEST(ModeTest, AnOptionWithoutAWordIsOn) {
  EXPECT_EQ(ModeOf(nullptr), kModeOn);
  EXPECT_EQ(ModeOf("(null)"), kModeOn);
  EXPECT_EQ(ModeOf("on"), kModeOn);
  EXPECT_EQ(ModeOf("off"), kModeOff);
  EXPECT_EQ(ModeOf("windows"), kModeWindows);
  EXPECT_EQ(ModeOf("offline"), kModeUnset);
  for (const Mode mode : {kModeOff, kModeOn, kModeWindows}) EXPECT_EQ(ModeOf(NameOfMode(mode)), mode);
}

}  // namespace
}  // namespace fullbore
