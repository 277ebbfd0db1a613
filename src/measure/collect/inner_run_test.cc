#include "measure/collect/inner_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/temporary_directory.h"
#include "measure/collect/channel_reader.h"
#include "measure/collect/leftovers.h"

namespace fullbore::collect {
namespace {

using nlohmann::json;

TEST(InnerRunTest, TheOuterRunLearnsWhichProcessRecords) {
  const auto place = TemporaryDirectory::Make();
  const auto outer = MakeChannelDirectory(place->path(), "outer");
  ASSERT_TRUE(outer);
  TellOuterRun(*outer);
  EXPECT_EQ(InnerRecorders(ChannelDirectory(*outer).LinesWithoutRing()), std::vector<int64_t>{getpid()});
}

TEST(InnerRunTest, LeavesNothingInADirectoryThatIsNoChannel) {
  const auto place = TemporaryDirectory::Make();
  TellOuterRun(place->path());
  TellOuterRun(place->path() + "/missing");
  EXPECT_TRUE(ChannelDirectory(place->path()).LinesWithoutRing().empty());
}

TEST(InnerRunTest, WhatIsNoRecorderIsPassedOver) {
  EXPECT_TRUE(
      InnerRecorders({json{{"k", "hello"}, {"role", "trainer"}, {"pid", 1}}, json{{"k", "hello"}, {"pid", 2}},
                      json{{"k", "fact"}, {"role", "recorder"}, {"pid", 3}},
                      json{{"k", "hello"}, {"role", "recorder"}, {"pid", "4"}}, json::object()})
          .empty());
}

}  // namespace
}  // namespace fullbore::collect
