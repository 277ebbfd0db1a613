#include "explain/diagnose/places.h"

#include <gtest/gtest.h>

namespace fullbore::diagnose {
namespace {

using record::HotLine;

HotLine Line(const std::string& file, int line, int64_t samples, const std::string& text = "") {
  HotLine hot;
  hot.file = file;
  hot.line = line;
  hot.samples = samples;
  hot.text = text;
  return hot;
}

bool All(const HotLine&) { return true; }

TEST(PlacesTest, LibrariesAreNamedByTheirModule) {
  EXPECT_EQ(FileOrModule("/v/lib/python3.11/site-packages/pandas/core/indexing.py"), "pandas.core.indexing");
  EXPECT_EQ(FileOrModule("/usr/lib/python3/dist-packages/yaml/__init__.py"), "yaml");
  EXPECT_EQ(FileOrModule("/usr/lib/python3.11/json/decoder.py"), "json.decoder");
}

TEST(PlacesTest, FilesOfTheUsersAreNot) {
  EXPECT_EQ(FileOrModule("/home/u/site/train.py"), "/home/u/site/train.py");
  EXPECT_EQ(FileOrModule("<string>"), "<string>");
}

TEST(PlacesTest, TheScriptThatStartsAnInstalledProgramIsNoPlaceToEdit) {
  EXPECT_FALSE(IsPlaceToEdit("/usr/local/bin/torchrun"));
  EXPECT_FALSE(IsPlaceToEdit("/home/u/.venv/bin/xyz", "sys.exit(main())"));
  EXPECT_TRUE(IsPlaceToEdit("/home/u/bin/train", "loss.backward()"));
  EXPECT_TRUE(IsPlaceToEdit("/home/u/bin/train.py"));
  EXPECT_TRUE(IsPlaceToEdit("train.py"));
}

TEST(PlacesTest, EachLineIsNamedOnceWithThePartOfAllItsSamples) {
  const auto places = PlacesOf({Line("/w/a.py", 3, 10), Line("/w/b.py", 4, 30), Line("/w/a.py", 3, 40),
                                Line("/v/bin/torchrun", 8, 90), Line("", 0, 5)},
                               All, 100);
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[0].file, "/w/a.py");
  EXPECT_DOUBLE_EQ(places[0].share, 0.5);
  EXPECT_EQ(places[1].line, 4);
}

TEST(PlacesTest, ASentenceNamesEachFileOnce) {
  EXPECT_EQ(NamesOf({{"/u/train.py", 30, "", 0}, {"/u/train.py", 32, "", 0}, {"wandb.watch", 7, "", 0}}),
            "train.py:30, :32, wandb.watch:7");
  EXPECT_EQ(NamesOf({}), "");
  EXPECT_EQ(NamesOf({{"<cell 4>", 7, "", 0}, {"<cell 4>", 9, "", 0}, {"/u/train.py", 30, "", 0}}),
            "cell 4, line 7, line 9, train.py:30");
}

}  // namespace
}  // namespace fullbore::diagnose
