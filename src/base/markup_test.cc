#include "base/markup.h"

#include <gtest/gtest.h>

namespace fullbore {
namespace {

TEST(MarkupTest, ANameEndsNoCellOfATable) {
  EXPECT_EQ(InMarkdown("an|na\n# x"), "an\\|na \\# x");
  EXPECT_EQ(InMarkdown("`a` [b](c)"), "\\`a\\` \\[b\\](c)");
}

TEST(MarkupTest, ANameIsNoElementAndEndsNoAttribute) {
  EXPECT_EQ(InXml("<a href=\"x\"> & 'y'"), "&lt;a href=&quot;x&quot;&gt; &amp; 'y'");
  EXPECT_EQ(InHtml("a\nb"), "a\nb");
}

TEST(MarkupTest, WhatXmlCannotHoldIsShownAsAnEscape) { EXPECT_EQ(InXml("a\x1b[31m"), "a\\x1b[31m"); }

}  // namespace
}  // namespace fullbore
