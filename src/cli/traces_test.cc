#include "cli/traces.h"

#include <gmock/gmock.h>

#include "base/testing/scratch_directory.h"

namespace fullbore::cli {
namespace {

using testing::HasSubstr;

TEST(MeansTracesTest, AWordThatIsNoPathIsARun) {
  EXPECT_FALSE(MeansTraces({"2026-11-20-train"}));
  EXPECT_FALSE(MeansTraces({"last"}));
  EXPECT_FALSE(MeansTraces({}));
}

TEST(MeansTracesTest, SeveralWordsAndWhatLooksLikeATraceAreTraces) {
  EXPECT_TRUE(MeansTraces({"rank0", "rank1"}));
  EXPECT_TRUE(MeansTraces({"trace.json.gz"}));
  EXPECT_TRUE(MeansTraces({"out/trace"}));
  EXPECT_FALSE(MeansTraces({"runs/train.fbr"}));
}

TEST(MeansTracesTest, WhatIsThereTellsMoreThanItsName) {
  const ScratchDirectory directory;
  EXPECT_TRUE(MeansTraces({directory.path()}));
  EXPECT_TRUE(MeansTraces({directory.Write("profile", R"({"traceEvents": []})")}));
  EXPECT_FALSE(MeansTraces({directory.Write("train.fbr", "")}));
}

TEST(RefuseRunsTest, SaysHowRunsAreExplained) {
  const ScratchDirectory directory;
  EXPECT_TRUE(RefuseRuns({directory.path()}).ok());
  const std::string run = directory.Write("train.fbr", "");
  EXPECT_THAT(RefuseRuns({"trace.json", run}).error().text, HasSubstr("is a recorded run, not a trace"));
  EXPECT_THAT(RefuseRuns({directory.path()}).error().hint, HasSubstr("fullbore runs -o "));
}

}  // namespace
}  // namespace fullbore::cli
