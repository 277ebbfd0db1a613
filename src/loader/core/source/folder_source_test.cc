#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/testing/scratch_directory.h"
#include "fullbore/loader/source.h"
#include "loader/core/source/testing/read_all.h"

namespace fullbore::loader {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ReadAll;

SourceOptions Folder(const std::string& path, std::vector<std::string> fields = {}) {
  SourceOptions options;
  options.paths = {path};
  options.fields = std::move(fields);
  return options;
}

TEST(FolderSourceTest, NumbersClassesAndOrdersFilesAsTorchvisionDoes) {
  ScratchDirectory root;
  // torchvision sorts directories by their whole path: "dog", "dog/a", "dog/a-b", "dog/a/z".
  for (const char* name : {"dog/b.jpg", "dog/a/1.JPEG", "dog/a-b/0.webp", "dog/a/z/2.png", "dog/B.jpg",
                           "cat/10.jpg", "cat/9.jpg", "cat-big/1.png", "cat/notes.txt", "dog/x.gif"}) {
    root.Write(name, name);
  }
  auto source = OpenSource(Folder(root.path()));
  ASSERT_TRUE(source.ok()) << ToString(source.error());
  EXPECT_THAT((*source)->class_names(), ElementsAre("cat", "cat-big", "dog"));
  EXPECT_THAT(ReadAll(**source),
              ElementsAre("cat/10.jpg|0", "cat/9.jpg|0", "cat-big/1.png|1", "dog/B.jpg|2", "dog/b.jpg|2",
                          "dog/a/1.JPEG|2", "dog/a-b/0.webp|2", "dog/a/z/2.png|2"));
  EXPECT_EQ((*source)->NameOf(1), root / "cat/9.jpg");
  EXPECT_EQ((*source)->fields()[0].kind, SourceFieldKind::kImage);
  EXPECT_EQ((*source)->fields()[1].kind, SourceFieldKind::kInteger);
}

TEST(FolderSourceTest, FollowsLinksButNotInCircles) {
  ScratchDirectory root, elsewhere;
  elsewhere.Write("1.jpg", "linked");
  root.Write("a/0.jpg", "own");
  fs::create_directory_symlink(elsewhere.path(), root / "b");
  fs::create_directory_symlink(root / "a", root / "a/again");
  auto source = OpenSource(Folder(root.path() + "/"));
  ASSERT_TRUE(source.ok()) << ToString(source.error());
  EXPECT_THAT(ReadAll(**source), ElementsAre("own|0", "linked|1"));
}

TEST(FolderSourceTest, ReadsImagesWithoutLabelsWhereOnlyTheyAreAskedFor) {
  ScratchDirectory root;
  root.Write("2.jpg", "two");
  root.Write("1.png", "one");
  root.Write("more/3.jpg", "three");
  auto source = OpenSource(Folder(root.path(), {"image"}));
  ASSERT_TRUE(source.ok()) << ToString(source.error());
  EXPECT_THAT(ReadAll(**source), ElementsAre("one", "two", "three"));
  EXPECT_TRUE((*source)->class_names().empty());
}

TEST(FolderSourceTest, SaysWhatIsMissing) {
  ScratchDirectory root;
  auto empty = OpenSource(Folder(root.path()));
  ASSERT_FALSE(empty.ok());
  EXPECT_THAT(empty.error().text, HasSubstr("no images below"));
  EXPECT_THAT(empty.error().text, HasSubstr(".jpeg"));

  root.Write("cat/1.jpg", "x");
  auto below = OpenSource(Folder(root / "cat"));
  ASSERT_FALSE(below.ok());
  EXPECT_THAT(below.error().hint, HasSubstr("did you mean the directory above, '" + root.path() + "'?"));

  fs::create_directory(root / ".ipynb_checkpoints");
  auto forgotten = OpenSource(Folder(root.path()));
  ASSERT_FALSE(forgotten.ok());
  EXPECT_THAT(forgotten.error().text, HasSubstr("'.ipynb_checkpoints'"));

  auto unknown = OpenSource(Folder(root.path(), {"caption"}));
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().text, HasSubstr("'caption'"));

  auto nowhere = OpenSource(Folder(root / "absent"));
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().code, ErrorCode::kNotFound);
}

TEST(FolderSourceTest, AVanishedFileIsOneBadSample) {
  ScratchDirectory root;
  root.Write("a/1.jpg", "one");
  root.Write("a/2.jpg", "two");
  auto source = OpenSource(Folder(root.path()));
  ASSERT_TRUE(source.ok());
  fs::remove(root / "a/1.jpg");
  RawSample sample;
  auto gone = (*source)->Read(0, sample);
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(gone.error().text, HasSubstr("a/1.jpg"));
  EXPECT_TRUE((*source)->Read(1, sample).ok());
}

TEST(FolderSourceTest, AFifoIsABadSampleAndNoHang) {
  ScratchDirectory root;
  root.Write("a/1.jpg", "one");
  auto source = OpenSource(Folder(root.path()));
  ASSERT_TRUE(source.ok());
  fs::remove(root / "a/1.jpg");
  ASSERT_EQ(mkfifo((root / "a/1.jpg").c_str(), 0600), 0);
  RawSample sample;
  EXPECT_FALSE((*source)->Read(0, sample).ok());
}

TEST(FolderSourceTest, AShorterSampleAfterALongOneHasItsOwnLength) {
  ScratchDirectory root;
  root.Write("a/1.jpg", std::string(10'000, 'x'));
  root.Write("a/2.jpg", "y");
  root.Write("a/3.jpg", "");
  auto source = OpenSource(Folder(root.path()));
  ASSERT_TRUE(source.ok());
  EXPECT_THAT(ReadAll(**source), ElementsAre(std::string(10'000, 'x') + "|0", "y|0", "|0"));
}

}  // namespace
}  // namespace fullbore::loader
