#include "base/temporary_directory.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace fullbore {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryDirectory, IsRemovedWithItsContents) {
  std::string path;
  {
    auto made = TemporaryDirectory::Make();
    ASSERT_TRUE(made.ok());
    path = made->path();
    const TemporaryDirectory moved = std::move(*made);
    EXPECT_EQ(moved.path(), path);
    std::ofstream(path + "/file") << "text";
    EXPECT_TRUE(fs::exists(path + "/file"));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(TemporaryDirectory, NamesThePlaceItCannotBeCreatedIn) {
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before ? before : "";
  setenv("TMPDIR", "/nowhere", 1);
  const auto made = TemporaryDirectory::Make();
  before ? setenv("TMPDIR", kept.c_str(), 1) : unsetenv("TMPDIR");
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().text, ::testing::HasSubstr("TMPDIR"));
}

}  // namespace
}  // namespace fullbore
