#include "base/printable.h"

#include <gmock/gmock.h>

namespace fullbore {
namespace {

using testing::ElementsAre;

TEST(PrintableTest, AFileNameCannotMoveTheCursor) {
  EXPECT_EQ(Printable("a\x1b[2Jb\nc\td\re\x7f", true), "a\\x1b[2Jb c d e\\x7f");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m",
                      true),
            "\\u009b31m");  // the C1 form of ESC [
  EXPECT_EQ(Printable(std::string_view("\0", 1), true), "\\x00");
}

TEST(PrintableTest, AFileNameCannotReverseOrHideText) {
  EXPECT_EQ(Printable("x\u202egpj.exe", true), "x\\u202egpj.exe");  // right-to-left override
  EXPECT_EQ(Printable("a\u2066b\u200bc\ufeff", true), "a\\u2066b\\u200bc\\ufeff");
  EXPECT_EQ(Printable("a\u2028b", true), "a\\u2028b");        // a line break to some
  EXPECT_EQ(Printable("a\U000e0041", true), "a\\U000e0041");  // an invisible letter
}

TEST(PrintableTest, BrokenUtf8IsEscapedByteForByte) {
  EXPECT_EQ(Printable("a\xff\xc3", true), "a\\xff\\xc3");
  EXPECT_EQ(Printable("\x9b", true), "\\x9b");
  EXPECT_EQ(Printable("\xe2\x82", true), "\\xe2\\x82");
  EXPECT_EQ(Printable("\xc0\xaf", true), "\\xc0\\xaf");  // overlong '/'
}

TEST(PrintableTest, PrintableTextIsUnchanged) {
  const std::string text = "größer 训练 e\u0301 \u2764\ufe0f 🚀 /data/it's a \"test\".tar";
  EXPECT_EQ(Printable(text, true), text);
}

TEST(PrintableTest, WithoutUnicodeKnownSignsHaveAsciiForms) {
  EXPECT_EQ(Printable("±4 · 2× → größer…", false), "+-4 - 2x -> gr\\u00f6\\u00dfer...");
}

TEST(PrintableTest, JsonMeansTheSameWithItsControlsEscaped) {
  EXPECT_EQ(PrintableJson("{\n  \"\u202e\": \"ö\u009b\U000e0041\x7f\"\n}\n"),
            "{\n  \"\\u202e\": \"ö\\u009b\\udb40\\udc41\\u007f\"\n}\n");
}

TEST(PrintableTest, WideAndCombiningCharactersTakeTheirColumns) {
  EXPECT_EQ(Columns("训练.py"), 7);
  EXPECT_EQ(Columns("e\xcc\x81"), 1);
  EXPECT_EQ(Columns("…"), 1);
  EXPECT_EQ(Columns("🚀"), 2);
  EXPECT_EQ(Columns("⌚"), 2);  // an emoji below the planes of emoji
  EXPECT_EQ(Columns("ก็"), 1);  // a combining vowel
}

TEST(PrintableTest, ElisionKeepsTheBeginningOfTitlesAndTheEndOfPaths) {
  EXPECT_EQ(Elide("pageable copies", 9, true), "pageable…");
  EXPECT_EQ(Elide("pageable copies", 9, false), "pageab...");
  EXPECT_EQ(Elide("short", 5, true), "short");
  EXPECT_EQ(ElideFront("/home/user/train.py:57", 12, true), "…train.py:57");
}

TEST(PrintableTest, WrappingNeverExceedsTheWidth) {
  EXPECT_THAT(Wrap("the GPU waits for data", 9), ElementsAre("the GPU", "waits for", "data"));
  EXPECT_THAT(Wrap("a abcdefghij b", 4), ElementsAre("a", "abcd", "efgh", "ij b"));
  EXPECT_THAT(Wrap("", 10), ElementsAre(""));
}

TEST(PrintableTest, WhatIsCutKeepsItsIndentation) {
  EXPECT_EQ(Elide("    an indented line", 12, true), "    an inde…");
  EXPECT_EQ(Elide("  an indented line", 12, false), "  an inde...");
  EXPECT_EQ(Elide("word after", 6, true), "word…");
}

}  // namespace
}  // namespace fullbore
