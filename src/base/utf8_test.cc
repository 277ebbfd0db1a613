#include "base/utf8.h"

#include <gtest/gtest.h>

namespace fullbore {
namespace {

TEST(Utf8Test, EveryCharacterComesBackFromItsBytes) {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string text;
    AppendUtf8(&text, code);
    const Utf8Character back = FrontCharacter(text);
    ASSERT_TRUE(back.valid && back.code == code && back.bytes == text.size()) << std::hex << uint32_t{code};
  }
}

TEST(Utf8Test, AnInvalidCodeIsWrittenAsTheReplacementCharacter) {
  for (const char32_t code : {0xD800, 0xDFFF, 0x110000, -1}) {
    std::string text;
    AppendUtf8(&text, code);
    EXPECT_EQ(text, "\xef\xbf\xbd");
  }
}

TEST(Utf8Test, BrokenTextIsFoundWhereverItStands) {
  const std::string_view broken[] = {
      "\xff",         "\x80",     "\xc3",     "\xc0\xaf",         "\xe0\x80\xaf",
      "\xed\xa0\x80", "\xe2\x82", "\xc3\x28", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80"};
  for (const std::string_view bytes : broken) {
    for (const size_t before : {0, 1, 7, 8, 63, 64, 200}) {
      const std::string text = std::string(before, 'a').append(bytes).append("b");
      EXPECT_FALSE(IsUtf8(text)) << testing::PrintToString(text);
      EXPECT_TRUE(IsUtf8(MendUtf8(text))) << testing::PrintToString(text);
    }
    EXPECT_FALSE(IsUtf8(bytes)) << testing::PrintToString(bytes);
  }
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("größer 训练 🚀 and a long tail of plain letters, which is looked at a block at a time"));
}

TEST(Utf8Test, MendingReplacesABrokenByteAndKeepsTheRest) {
  EXPECT_EQ(MendUtf8("a\xffgr\xc3\xb6"), "a\xef\xbf\xbdgr\xc3\xb6");
  EXPECT_EQ(MendUtf8("\xe2\x82"), "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(Utf8Test, AFrontEndsWithAWholeCharacter) {
  EXPECT_EQ(Utf8Front("größer", 3), "gr");
  EXPECT_EQ(Utf8Front("größer", 4), "grö");
  EXPECT_EQ(Utf8Front("größer", 100), "größer");
  EXPECT_EQ(Utf8Front("\x80\x80\x80", 2), "");
}

}  // namespace
}  // namespace fullbore
