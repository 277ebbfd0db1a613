#include "tune/proof/commit.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "base/captured.h"
#include "base/clock.h"
#include "base/testing/scratch_directory.h"

namespace fullbore::tune {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A repository of two commits, in which the test stands.
class RepositoryTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto version = RunAndCapture({"git", "--version"}, 10 * kNsPerSecond);
    if (!version.ok()) GTEST_SKIP() << "git is not installed";
    fs::current_path(scratch_.path());
    Git({"init", "--quiet"});
    Commit("one");
    Git({"tag", "first"});
    Commit("two");
  }
  void TearDown() override { fs::current_path(before_); }

  static std::string Run(const std::vector<std::string>& words) {
    const auto done = RunAndCapture(words, 10 * kNsPerSecond);
    return done ? done->output : done.error().text;
  }
  static std::string Git(std::vector<std::string> words) {
    words.insert(words.begin(), {"git", "-c", "user.name=test", "-c", "user.email=test@localhost"});
    return Run(words);
  }
  void Commit(const std::string& text) const {
    scratch_.Write("train.txt", text + "\n");
    Git({"add", "train.txt"});
    Git({"commit", "--quiet", "-m", text});
  }

  ScratchDirectory scratch_;
  const fs::path before_ = fs::current_path();
};

TEST_F(RepositoryTest, ACommandRunsOnTheCommitThatIsNamed) {
  const auto repository = Repository::Find();
  ASSERT_TRUE(repository.ok()) << repository.error().text;
  const auto commit = repository->CommitNamed("first");
  ASSERT_TRUE(commit.ok()) << commit.error().text;
  EXPECT_EQ(commit->size(), 40u);
  scratch_.Write("data.bin", "git does not know it");
  EXPECT_EQ(Run(repository->CommandAt(*commit, {"cat", "train.txt", "data.bin"})),
            "one\ngit does not know it");
}

TEST_F(RepositoryTest, TheStateOfTheTreeTellsWhetherItChanged) {
  const auto repository = Repository::Find();
  const std::string clean = repository->State().value();
  EXPECT_TRUE(repository->IsClean(clean));
  EXPECT_EQ(Repository::CommitOf(clean), repository->CommitNamed("HEAD").value());
  scratch_.Write("data.bin", "git does not know it");
  EXPECT_EQ(repository->State().value(), clean);
  scratch_.Write("train.txt", "three\n");
  const std::string dirty = repository->State().value();
  EXPECT_FALSE(repository->IsClean(dirty));
  EXPECT_EQ(Repository::CommitOf(dirty), clean);
  scratch_.Write("train.txt", "four\n");
  EXPECT_NE(repository->State().value(), dirty);
}

TEST_F(RepositoryTest, WhatNamesNoCommitIsAnError) {
  const auto repository = Repository::Find();
  for (const char* name : {"", "nothing", "--all", "first:train.txt"}) {
    const auto commit = repository->CommitNamed(name);
    ASSERT_FALSE(commit.ok()) << name;
    EXPECT_THAT(commit.error().text, HasSubstr("is not a commit"));
  }
}

TEST_F(RepositoryTest, OtherSubmodulesAreRefused) {
  const auto link = [&](const std::string& commit) {
    Git({"update-index", "--add", "--cacheinfo", "160000," + commit + ",library"});
    Git({"commit", "--quiet", "-m", "library"});
  };
  fs::create_directory(scratch_ / "library");
  const auto repository = Repository::Find();
  const std::string first = repository->CommitNamed("first").value();
  link(first);
  Git({"tag", "linked"});
  Commit("three");
  EXPECT_TRUE(repository->CommitNamed("linked").ok()) << "the same submodule";
  link(repository->CommitNamed("linked").value());
  const auto commit = repository->CommitNamed("linked");
  ASSERT_FALSE(commit.ok());
  EXPECT_THAT(commit.error().text, HasSubstr("other submodules"));
}

TEST_F(RepositoryTest, OutsideAWorkingTreeThereIsNone) {
  const ScratchDirectory elsewhere;
  fs::current_path(elsewhere.path());
  const auto repository = Repository::Find();
  ASSERT_FALSE(repository.ok());
  EXPECT_THAT(repository.error().text, HasSubstr("not in a working tree of git"));
  EXPECT_THAT(repository.error().hint, HasSubstr("--baseline"));
}

}  // namespace
}  // namespace fullbore::tune
