#include "mcp/allowed_paths.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "base/testing/scratch_directory.h"

namespace fullbore::mcp {
namespace {

namespace fs = std::filesystem;

// The working directory is `inside`, beside `outside`.
class AllowedPathsTest : public ::testing::Test {
 protected:
  AllowedPathsTest() {
    directory_.Write("outside/trace.json", "{}");
    directory_.Write("inside/trace.json", "{}");
    fs::current_path(directory_ / "inside");
  }
  ~AllowedPathsTest() override { fs::current_path(before_); }

  static bool MayName(const std::string& path, const std::vector<std::string>& more = {}) {
    return AllowedPaths::Make(more)->Resolve(path).ok();
  }

  const fs::path before_ = fs::current_path();
  const ScratchDirectory directory_;
};

TEST_F(AllowedPathsTest, TakesWhatLiesInTheWorkingDirectory) {
  EXPECT_TRUE(MayName("trace.json"));
  EXPECT_TRUE(MayName("."));
  EXPECT_TRUE(MayName("not/yet/there"));
  EXPECT_TRUE(MayName(directory_ / "inside/trace.json"));
}

TEST_F(AllowedPathsTest, RefusesWhatLiesOutside) {
  for (const char* path :
       {"/etc/passwd", "..", "../outside/trace.json", "not/../../outside/trace.json", "../inside2", "/"})
    EXPECT_FALSE(MayName(path)) << path;
  EXPECT_EQ(AllowedPaths::Make({})->Resolve("..").error().code, ErrorCode::kPermission);
}

TEST_F(AllowedPathsTest, RefusesALinkThatLeadsOutside) {
  fs::create_symlink("../outside/trace.json", "link.json");
  fs::create_directory_symlink("../outside", "folder");
  fs::create_symlink("../outside/new", "dangling");
  for (const char* path : {"link.json", "folder", "folder/trace.json", "dangling", "dangling/run.fbr"})
    EXPECT_FALSE(MayName(path)) << path;
}

TEST_F(AllowedPathsTest, RefusesADirectoryThatHoldsOne) {
  fs::create_directories("traces/rank0");
  EXPECT_TRUE(MayName("traces"));
  fs::create_symlink("../../../outside/trace.json", "traces/rank0/trace.json");
  EXPECT_FALSE(MayName("traces"));
}

TEST_F(AllowedPathsTest, TakesALinkThatStaysInside) {
  fs::create_symlink("trace.json", "link.json");
  EXPECT_EQ(*AllowedPaths::Make({})->Resolve("link.json"), fs::canonical("trace.json").string());
}

TEST_F(AllowedPathsTest, TakesWhatTheUserAllowsBesides) {
  EXPECT_TRUE(MayName("../outside/trace.json", {"../outside"}));
  EXPECT_FALSE(MayName("../outside2/trace.json", {"../outside"}));
  EXPECT_FALSE(AllowedPaths::Make({"../nothing"}).ok());
}

}  // namespace
}  // namespace fullbore::mcp
