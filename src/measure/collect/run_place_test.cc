#include "measure/collect/run_place.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/temporary_directory.h"

namespace fullbore::collect {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

constexpr uid_t kAnother = 12345;

// Works in a directory of its own.
class RunPlaceTest : public testing::Test {
 protected:
  RunPlaceTest() { fs::current_path(directory_->path()); }
  ~RunPlaceTest() override { fs::current_path(before_); }
  static std::string WhyNot(const std::string& wanted) {
    const auto made = MakeRunsDirectory(wanted);
    return made ? "" : made.error().text;
  }

  const fs::path before_ = fs::current_path();
  Result<TemporaryDirectory> directory_ = TemporaryDirectory::Make();
};

TEST_F(RunPlaceTest, ADirectoryThatIsMissingIsMadeForThisUserAlone) {
  EXPECT_EQ(MakeRunsDirectory(kDefaultRunsDirectory).value(), directory_->path() + "/.fullbore/runs");
  EXPECT_EQ(fs::status(".fullbore").permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(".fullbore/runs").permissions(), fs::perms::owner_all);
  EXPECT_EQ(WhyNot(kDefaultRunsDirectory), "") << "a second time";
}

TEST_F(RunPlaceTest, NoDirectoryIsUsedThatEverybodyCanWriteTo) {
  for (const mode_t mode : {0777, 01777}) {
    fs::create_directory("shared");
    ASSERT_EQ(chmod("shared", mode), 0);
    EXPECT_THAT(WhyNot("shared"), AllOf(HasSubstr("'shared' is not used for runs"), HasSubstr("everybody")));
    EXPECT_EQ(MakeRunsDirectory("shared").error().code, ErrorCode::kPermission);
  }
  EXPECT_EQ(WhyNot("shared/mine"), "") << "below a sticky one, like /tmp, nobody exchanges what is ours";
}

TEST_F(RunPlaceTest, NothingIsMadeWhereAPlantedLinkLeads) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: cannot act as another user";
  fs::create_directory("precious");
  fs::create_directory("open");
  ASSERT_EQ(chmod("open", 01777), 0);
  fs::create_directory_symlink("../precious", "open/.fullbore");
  ASSERT_EQ(lchown("open/.fullbore", kAnother, kAnother), 0);
  EXPECT_THAT(WhyNot("open/.fullbore/runs"), HasSubstr("belongs to the user number 12345"));
  EXPECT_TRUE(fs::is_empty("precious"));
}

TEST_F(RunPlaceTest, ATeamsDirectoryIsUsedWhereItIsNamedAndNotUnasked) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: cannot act as another user";
  fs::create_directories(kDefaultRunsDirectory);
  for (const char* theirs : {".fullbore", kDefaultRunsDirectory}) {
    ASSERT_EQ(chown(theirs, kAnother, kAnother), 0);
    ASSERT_EQ(chmod(theirs, 02770), 0);
    EXPECT_THAT(WhyNot(kDefaultRunsDirectory),
                HasSubstr(std::string("'") + theirs + "' belongs to the user number 12345"));
    EXPECT_EQ(WhyNot(directory_->path() + "/" + kDefaultRunsDirectory), "");
    ASSERT_EQ(chown(theirs, 0, kAnother), 0);
    EXPECT_EQ(WhyNot(kDefaultRunsDirectory), "") << "ours, opened to a group";
  }
}

}  // namespace
}  // namespace fullbore::collect
