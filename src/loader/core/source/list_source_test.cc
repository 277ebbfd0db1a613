#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_directory.h"
#include "fullbore/loader/source.h"
#include "loader/core/source/list_file.h"
#include "loader/core/source/testing/read_all.h"

namespace fullbore::loader {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ReadAll;

class ListSourceTest : public ::testing::Test {
 protected:
  ListSourceTest() {
    for (const char* name : {"a.jpg", "b c.jpg", "deep/d.png"}) root_.Write(name, name);
  }

  Result<std::unique_ptr<Source>> OpenList(const std::string& name, const std::string& text,
                                           std::vector<std::string> fields = {}) {
    SourceOptions options;
    options.paths = {root_.Write(name, text)};
    options.fields = std::move(fields);
    return OpenSource(options);
  }

  ScratchDirectory root_;
};

TEST_F(ListSourceTest, ReadsPathsAndNumbers) {
  auto source = OpenList("train.txt", "a.jpg 7\nb c.jpg 3\r\n\ndeep/d.png\t-1\n");
  ASSERT_TRUE(source.ok()) << ToString(source.error());
  EXPECT_THAT(ReadAll(**source), ElementsAre("a.jpg|7", "b c.jpg|3", "deep/d.png|-1"));
  EXPECT_THAT((*source)->class_names(), IsEmpty());
  EXPECT_EQ((*source)->NameOf(2), root_ / "deep/d.png");
}

TEST_F(ListSourceTest, TakesNpyFilesForArrays) {
  root_.Write("a.npy", "array");
  auto source = OpenList("train.txt", "a.npy 7\n");
  ASSERT_TRUE(source.ok()) << ToString(source.error());
  EXPECT_EQ((*source)->fields()[0].kind, SourceFieldKind::kNpy);
  EXPECT_THAT(ReadAll(**source), ElementsAre("array|7"));
}

TEST_F(ListSourceTest, NumbersTextLabelsByTheirSortedSet) {
  auto source = OpenList("train.csv",
                         "\xef\xbb\xbf"
                         "path,label\na.jpg,\"zebra, \"\"the\"\" one\"\n\"b c.jpg\",ape\ndeep/d.png,ape");
  ASSERT_TRUE(source.ok()) << ToString(source.error());
  EXPECT_THAT((*source)->class_names(), ElementsAre("ape", "zebra, \"the\" one"));
  EXPECT_THAT(ReadAll(**source), ElementsAre("a.jpg|1", "b c.jpg|0", "deep/d.png|0"));
}

TEST_F(ListSourceTest, FindsColumnsByTheirNames) {
  auto source = OpenList("train.tsv", "caption\tclass\tfile\nan a\t2\ta.jpg\nmuch\t4\tb c.jpg\n",
                         {"caption", "image", "label"});
  ASSERT_TRUE(source.ok()) << ToString(source.error());
  EXPECT_THAT(ReadAll(**source), ElementsAre("an a|a.jpg|2", "much|b c.jpg|4"));
  EXPECT_EQ((*source)->fields()[0].kind, SourceFieldKind::kText);
  auto captions = OpenList("pairs.csv", "image,caption\na.jpg,an a\n", {"image", "caption"});
  ASSERT_TRUE(captions.ok()) << ToString(captions.error());
  EXPECT_THAT(ReadAll(**captions), ElementsAre("a.jpg|an a"));
}

TEST_F(ListSourceTest, ReadsImagesAlone) {
  auto source = OpenList("paths.txt", "a.jpg\nb c.jpg\n", {"image"});
  ASSERT_TRUE(source.ok()) << ToString(source.error());
  EXPECT_THAT(ReadAll(**source), ElementsAre("a.jpg", "b c.jpg"));
}

TEST_F(ListSourceTest, SaysWhichLineIsWrong) {
  const auto text_of = [this](const std::string& name, const std::string& text) {
    auto source = OpenList(name, text);
    return source.ok() ? std::string() : source.error().text;
  };
  EXPECT_THAT(text_of("l.txt", "a.jpg 1\nb.jpg\n"), HasSubstr("line 2: 1 columns, but the first line has 2"));
  EXPECT_THAT(text_of("l.csv", "a.jpg,1\n\"b.jpg,2\n\n"), HasSubstr("line 2: a quote is never closed"));
  EXPECT_THAT(text_of("l.csv", "\"a\nb.jpg\",1\n\"c\"d,2\n"),
              HasSubstr("line 3: text after a closing quote"));
  EXPECT_THAT(text_of("l.csv", "path,caption\na.jpg,x\n,y\n"), HasSubstr("line 3: no path"));
  EXPECT_THAT(text_of("l.txt", "a.jpg\n"), HasSubstr("there is no label"));
  EXPECT_THAT(text_of("l.txt", "\n"), HasSubstr("names no samples"));
}

TEST_F(ListSourceTest, EveryTruncationIsAnErrorOrFewerRows) {
  const std::string text = "path,label,note\n\"a.jpg\",ape,\"x\ny\"\nb c.jpg,bee,\n";
  for (size_t length = 0; length <= text.size(); ++length) {
    auto source = OpenList("cut.csv", text.substr(0, length));
    if (!source.ok()) continue;
    EXPECT_LE((*source)->size(), 2u);
    ReadAll(**source);
  }
}

TEST(ListFileTest, KeepsLineEndsWithinQuotes) {
  std::vector<std::string> cells;
  auto parsed = ParseList("a,\"1\n2\"\r\n,\n", ListSyntax::kComma, [&](uint64_t, auto row) -> Result<void> {
    cells.insert(cells.end(), row.begin(), row.end());
    return {};
  });
  ASSERT_TRUE(parsed.ok());
  EXPECT_THAT(cells, ElementsAre("a", "1\n2", "", ""));
}

}  // namespace
}  // namespace fullbore::loader
