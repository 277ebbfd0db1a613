#include "base/trusted_path.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_directory.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr uid_t kAnother = 12345;

// A directory of ours with "folder/file" in it.
class TrustedPathTest : public testing::Test {
 protected:
  TrustedPathTest() {
    fs::create_directory(Path("folder"));
    std::ofstream(Path("folder/file")) << "x";
    SetMode("folder", 0755);
    SetMode("folder/file", 0755);
  }
  std::string Path(const std::string& name) const { return directory_->path() + "/" + name; }
  void SetMode(const std::string& name, mode_t mode) { ASSERT_EQ(chmod(Path(name).c_str(), mode), 0); }
  void GiveAway(const std::string& name) {  // only root may
    ASSERT_EQ(lchown(Path(name).c_str(), kAnother, kAnother), 0);
  }
  std::string WhyNot(const std::string& name, Others others) {
    const auto real = TrustedPath(Path(name), others);
    if (real) return "";
    EXPECT_EQ(real.error().code, ErrorCode::kPermission);
    return real.error().text;
  }

  Result<TemporaryDirectory> directory_ = TemporaryDirectory::Make();
};

TEST_F(TrustedPathTest, IsWhereALinkOfOurOwnLeads) {
  fs::create_directory_symlink("folder", Path("link"));
  fs::create_symlink(Path("link/file"), Path("folder/again"));
  EXPECT_EQ(TrustedPath(Path("link/../link/./again"), Others::kNone).value(), Path("folder/file"));
  EXPECT_EQ(TrustedPath("/", Others::kNone).value(), "/");
}

TEST_F(TrustedPathTest, WhatIsNotThereYetIsNobodys) {
  EXPECT_EQ(TrustedPath(Path("new/one"), Others::kNone).value(), Path("new/one"));
}

TEST_F(TrustedPathTest, LinksThatLeadInACircleAreAnError) {
  fs::create_symlink("b", Path("a"));
  fs::create_symlink("a", Path("b"));
  EXPECT_FALSE(TrustedPath(Path("a"), Others::kChosen));
}

TEST_F(TrustedPathTest, WhatEverybodyCanExchangeIsNotTrusted) {
  SetMode("folder", 0777);
  for (const Others others : {Others::kNone, Others::kChosen})
    EXPECT_THAT(WhyNot("folder/file", others), HasSubstr("folder' can be written to by everybody"));
  SetMode("folder", 01777);  // nobody renames what is ours
  for (const Others others : {Others::kNone, Others::kChosen}) EXPECT_EQ(WhyNot("folder/file", others), "");
  SetMode("folder/file", 0777);
  EXPECT_THAT(WhyNot("folder/file", Others::kNone), HasSubstr("file' can be written to by everybody"));
}

TEST_F(TrustedPathTest, AGroupMaySayWhereAFolderIsButNotWhatIsRun) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: has no other group";
  SetMode("folder", 0775);
  EXPECT_EQ(WhyNot("folder/file", Others::kNone), "") << "root's own group";
  ASSERT_EQ(chown(Path("folder").c_str(), 0, kAnother), 0);
  SetMode("folder", 02775);
  EXPECT_EQ(WhyNot("folder/file", Others::kChosen), "");
  EXPECT_THAT(WhyNot("folder/file", Others::kNone), HasSubstr("by the group number 12345"));
}

TEST_F(TrustedPathTest, AnotherUsersFileOrFolderIsNotRunFrom) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: cannot act as another user";
  GiveAway("folder/file");
  EXPECT_THAT(WhyNot("folder/file", Others::kNone), HasSubstr("belongs to the user number 12345"));
  ASSERT_EQ(chown(Path("folder/file").c_str(), 0, 0), 0);
  GiveAway("folder");
  EXPECT_THAT(WhyNot("folder/file", Others::kNone), HasSubstr("folder' belongs to the user number 12345"));
  EXPECT_EQ(WhyNot("folder/file", Others::kChosen), "") << "he let us in";
}

TEST_F(TrustedPathTest, WhatAnotherUserPutWhereEverybodyWritesIsNotTrusted) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: cannot act as another user";
  SetMode(".", 01777);
  fs::create_directory_symlink("folder", Path("link"));
  GiveAway("link");
  for (const Others others : {Others::kNone, Others::kChosen})
    EXPECT_THAT(WhyNot("link/file", others), HasSubstr("link' belongs to the user number 12345"));
  GiveAway("folder");
  EXPECT_THAT(WhyNot("folder/file", Others::kChosen),
              HasSubstr("in a directory that everybody can write to"));
}

}  // namespace
}  // namespace fullbore
