#include "base/guarded_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_directory.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uid_t kUs = 1000, kAnother = 1001;

struct stat Of(uid_t user, mode_t mode) {
  struct stat status {};
  status.st_uid = user;
  status.st_mode = mode;
  return status;
}

class GuardedFile : public testing::Test {
 protected:
  GuardedFile() { std::ofstream(Path("victim")) << "precious"; }
  std::string Path(const std::string& name) const { return directory_->path() + "/" + name; }
  static mode_t ModeOf(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(lstat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
  }
  static std::string TextOf(const std::string& path) { return ReadFile(path).value(); }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_->path()))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<TemporaryDirectory> directory_ = TemporaryDirectory::Make();
};

TEST_F(GuardedFile, IsPlantedWhereAnotherUserPutItForEverybody) {
  const struct stat everybody = Of(0, S_IFDIR | 01777), chosen = Of(kAnother, S_IFDIR | 02770);
  EXPECT_TRUE(CouldBePlanted(Of(kAnother, S_IFREG | 0666), everybody, kUs));
  EXPECT_TRUE(CouldBePlanted(Of(kAnother, S_IFLNK | 0777), everybody, kUs));
  EXPECT_FALSE(CouldBePlanted(Of(kAnother, S_IFREG | 0660), chosen, kUs));
  EXPECT_FALSE(CouldBePlanted(Of(kUs, S_IFREG | 0600), everybody, kUs));
  EXPECT_FALSE(CouldBePlanted(Of(0, S_IFDIR | 0755), everybody, kUs));
  EXPECT_TRUE(CouldBePlanted(Of(kAnother, S_IFDIR | 0755), everybody, 0)) << "root trusts nobody either";
}

TEST_F(GuardedFile, CreatesNothingThroughALinkNorOverAFile) {
  fs::create_symlink(Path("victim"), Path("link"));
  fs::create_symlink(Path("not-there"), Path("dangling"));
  for (const char* name : {"victim", "link", "dangling"}) {
    EXPECT_FALSE(CreateFile(Path(name), kPrivateFile)) << name;
  }
  EXPECT_EQ(TextOf(Path("victim")), "precious");
  EXPECT_FALSE(fs::exists(Path("not-there")));
}

TEST_F(GuardedFile, ReplacesALinkAndNotWhereItLeads) {
  fs::create_symlink(Path("victim"), Path("link"));
  auto fd = CreateFileAnew(Path("link"), kPrivateFile);
  ASSERT_TRUE(fd) << fd.error().text;
  EXPECT_EQ(write(fd->get(), "x", 1), 1);
  EXPECT_EQ(TextOf(Path("victim")), "precious");
  EXPECT_EQ(TextOf(Path("link")), "x");
  EXPECT_EQ(ModeOf(Path("link")), 0600u);
}

TEST_F(GuardedFile, SharesARegularFileAndNothingElse) {
  ASSERT_TRUE(OpenOrCreateFile(Path("new"), kPrivateFile));
  EXPECT_EQ(ModeOf(Path("new")), 0600u);
  EXPECT_TRUE(OpenOrCreateFile(Path("new"), kPrivateFile));
  fs::create_symlink(Path("victim"), Path("link"));
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  const auto link = OpenOrCreateFile(Path("link"), kPrivateFile);
  ASSERT_FALSE(link);
  EXPECT_THAT(link.error().text, HasSubstr("symbolic link"));
  const auto fifo = OpenOrCreateFile(Path("fifo"), kPrivateFile);
  ASSERT_FALSE(fifo);
  EXPECT_THAT(fifo.error().text, HasSubstr("not a regular file"));
}

TEST_F(GuardedFile, TellsWhetherItCreatedAFile) {
  EXPECT_EQ(CreateFileIfMissing(Path("new"), kPrivateFile).value(), true);
  EXPECT_EQ(ModeOf(Path("new")), 0600u);
  EXPECT_EQ(CreateFileIfMissing(Path("new"), kPrivateFile).value(), false);
  fs::create_symlink(Path("victim"), Path("link"));
  EXPECT_FALSE(CreateFileIfMissing(Path("link"), kPrivateFile));
  EXPECT_FALSE(CreateFileIfMissing(Path("missing/new"), kPrivateFile));
}

TEST_F(GuardedFile, ReadsFromARegularFileAndNothingElse) {
  ASSERT_TRUE(OpenRegularFile(Path("victim")));
  fs::create_symlink(Path("victim"), Path("link"));
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  for (const char* name : {"link", "fifo", "nothing", "."}) EXPECT_FALSE(OpenRegularFile(Path(name))) << name;
}

TEST_F(GuardedFile, WritesAtOnceInThePlaceOfALink) {
  fs::create_symlink(Path("victim"), Path("page"));
  fs::create_symlink(Path("victim"), Path("page.part"));
  ASSERT_TRUE(WriteFileAtOnce(Path("page"), "text", kPrivateFile));
  EXPECT_EQ(TextOf(Path("page")), "text");
  EXPECT_EQ(ModeOf(Path("page")), 0600u);
  EXPECT_EQ(TextOf(Path("victim")), "precious");
  EXPECT_THAT(Names(), ElementsAre("page", "page.part", "victim"));
}

TEST_F(GuardedFile, LeavesNothingWhereItCannotWrite) {
  fs::create_directory(Path("page"));
  std::ofstream(Path("page/inside")) << "x";
  EXPECT_FALSE(WriteFileAtOnce(Path("page"), "text", kPrivateFile));
  EXPECT_THAT(Names(), ElementsAre("page", "victim"));
}

TEST_F(GuardedFile, MakesDirectoriesForThisUserAlone) {
  ASSERT_TRUE(MakeDirectory(Path("a/b/c/"), kPrivateDirectory));
  for (const char* name : {"a", "a/b", "a/b/c"}) EXPECT_EQ(ModeOf(Path(name)), 0700u) << name;
  EXPECT_TRUE(MakeDirectory(Path("a/b/c"), kPrivateDirectory));
  for (const char* name : {"victim", "victim/below"}) {
    EXPECT_FALSE(MakeDirectory(Path(name), kPrivateDirectory)) << name;
    EXPECT_FALSE(MakeTrustedDirectory(Path(name), kPrivateDirectory)) << name;
  }
}

TEST_F(GuardedFile, MakesAUniqueDirectoryForThisUserAlone) {
  const auto first = MakeUniqueDirectory(Path("run")), second = MakeUniqueDirectory(Path("run"));
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
  EXPECT_EQ(ModeOf(*first), 0700u);
  EXPECT_THAT(*first, testing::StartsWith(Path("run.")));
}

TEST_F(GuardedFile, FollowsALinkOfTheUsersOwnToADirectory) {
  fs::create_directory(Path("large-disk"));
  fs::create_directory_symlink(Path("large-disk"), Path("link"));
  EXPECT_TRUE(MakeTrustedDirectory(Path("link/"), kPrivateDirectory));
  EXPECT_TRUE(MakeTrustedDirectory(Path("link/below"), kPrivateDirectory));
  EXPECT_TRUE(fs::is_directory(Path("large-disk/below")));
  fs::create_symlink(Path("victim"), Path("to-a-file"));
  EXPECT_FALSE(MakeTrustedDirectory(Path("to-a-file"), kPrivateDirectory));
}

// Only root may give files away.
TEST_F(GuardedFile, UsesNothingThatAnotherUserPlanted) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: cannot act as another user";
  ASSERT_EQ(chmod(directory_->path().c_str(), 01777), 0);
  fs::create_directory(Path("theirs"));
  std::ofstream(Path("their-file")) << "x";
  fs::create_directory(Path("ours"));
  fs::create_directory_symlink(Path("theirs"), Path("our-link"));
  fs::create_directory_symlink(Path("ours"), Path("their-link"));
  for (const char* name : {"theirs", "their-file", "their-link"}) {
    ASSERT_EQ(lchown(Path(name).c_str(), kAnother, kAnother), 0);
  }
  for (const char* name : {"theirs", "their-link", "our-link"}) {
    const auto made = MakeTrustedDirectory(Path(name), kPrivateDirectory);
    ASSERT_FALSE(made) << name;
    EXPECT_EQ(made.error().code, ErrorCode::kPermission);
  }
  EXPECT_TRUE(MakeTrustedDirectory(Path("ours"), kPrivateDirectory));
  EXPECT_FALSE(OpenOrCreateFile(Path("their-file"), kPrivateFile));
  EXPECT_FALSE(OpenRegularFile(Path("their-file")));
  ASSERT_EQ(chmod(directory_->path().c_str(), 0700), 0);
  EXPECT_TRUE(MakeTrustedDirectory(Path("theirs"), kPrivateDirectory)) << "shared with chosen ones";
}

}  // namespace
}  // namespace fullbore
