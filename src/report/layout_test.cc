#include "report/layout.h"

#include <gmock/gmock.h>

namespace fullbore::report {
namespace {

using testing::ElementsAre;

TEST(LayoutTest, AFileNameCannotMoveTheCursor) {
  EXPECT_EQ(Printable("a\x1b[2Jb\nc\td", true), "a?[2Jb c d");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m",
                      true),
            "?31m");  // the C1 form of ESC [
  EXPECT_EQ(Printable("x\xe2\x80\xae"
                      "gpj.exe",
                      true),
            "x?gpj.exe");  // right-to-left override
}

TEST(LayoutTest, BrokenUtf8IsReplacedByteForByte) {
  EXPECT_EQ(Printable("a\xff\xc3", true), "a??");
  EXPECT_EQ(Printable("\xe2\x82", true), "??");
  EXPECT_EQ(Printable("\xc0\xaf", true), "??");  // overlong '/'
}

TEST(LayoutTest, WithoutUnicodeKnownSignsHaveAsciiForms) {
  EXPECT_EQ(Printable("±4 · 2× → größer…", false), "+-4 - 2x -> gr??er...");
}

TEST(LayoutTest, WideAndCombiningCharactersTakeTheirColumns) {
  EXPECT_EQ(Columns("训练.py"), 7);
  EXPECT_EQ(Columns("e\xcc\x81"), 1);
  EXPECT_EQ(Columns("…"), 1);
}

TEST(LayoutTest, ElisionKeepsTheBeginningOfTitlesAndTheEndOfPaths) {
  EXPECT_EQ(Elide("pageable copies", 9, true), "pageable…");
  EXPECT_EQ(Elide("pageable copies", 9, false), "pageab...");
  EXPECT_EQ(Elide("short", 5, true), "short");
  EXPECT_EQ(ElideFront("/home/user/train.py:57", 12, true), "…train.py:57");
}

TEST(LayoutTest, WrappingNeverExceedsTheWidth) {
  EXPECT_THAT(Wrap("the GPU waits for data", 9), ElementsAre("the GPU", "waits for", "data"));
  EXPECT_THAT(Wrap("a abcdefghij b", 4), ElementsAre("a", "abcd", "efgh", "ij b"));
  EXPECT_THAT(Wrap("", 10), ElementsAre(""));
}

}  // namespace
}  // namespace fullbore::report
