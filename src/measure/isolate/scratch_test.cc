#include "measure/isolate/scratch.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <fstream>

#include "base/guarded_file.h"
#include "base/testing/scratch_directory.h"

namespace fullbore::isolate {
namespace {

namespace fs = std::filesystem;

TEST(ScratchTest, IsRemovedWithWhatCannotBeReadAnyMore) {
  ScratchDirectory place;
  {
    const auto scratch = Scratch::Make(place.path());
    ASSERT_TRUE(scratch);
    fs::create_directories(scratch->path() + "/a/b/c");
    std::ofstream(scratch->path() + "/a/b/c/file") << "x";
    for (const char* each : {"/a/b/c", "/a/b", "/a"})
      fs::permissions(scratch->path() + each, fs::perms::none);
  }
  EXPECT_TRUE(fs::is_empty(place.path()));
}

TEST(ScratchTest, OneThatIsUsedIsNoLeftover) {
  ScratchDirectory place;
  const auto scratch = Scratch::Make(place.path());
  ASSERT_TRUE(scratch);
  EXPECT_EQ(RemoveLeftovers(place.path()), 0);
  EXPECT_TRUE(fs::exists(scratch->path()));
}

TEST(ScratchTest, WhatAKilledProcessLeftIsRemovedByTheNext) {
  ScratchDirectory place;
  const std::string left = place / "fullbore-trial.abcdef";
  place.Write("fullbore-trial.abcdef/lock", "");
  place.Write("fullbore-trial.abcdef/upper/0/upper/copy", "large");
  place.Write("train.py", "mine");
  ASSERT_TRUE(Scratch::Make(place.path()));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(place / "train.py"));
}

TEST(ScratchTest, WhatIsWrittenIsCounted) {
  ScratchDirectory place;
  const auto scratch = Scratch::Make(place.path());
  ASSERT_TRUE(scratch);
  const int64_t before = scratch->UsedBytes();
  std::ofstream(scratch->path() + "/big") << std::string(1 << 20, 'x');
  EXPECT_GE(scratch->UsedBytes() - before, 1 << 20);
  EXPECT_GT(scratch->most_bytes(), 0);
}

}  // namespace
}  // namespace fullbore::isolate
