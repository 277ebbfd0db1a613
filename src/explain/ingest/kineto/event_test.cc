#include "explain/ingest/kineto/event.h"

#include <gmock/gmock.h>

#include "explain/ingest/kineto/json_window.h"

namespace fullbore::ingest::kineto {
namespace {

// Text with the padding that the scanner may read.
std::string Padded(const std::string& text) { return text + std::string(kPadding, '\0'); }

TEST(NanosecondsTest, AreExactBeyondWhatADoubleHolds) {
  EXPECT_EQ(NanosecondsOfMicros("1669783687464181"), 1669783687464181000);
  EXPECT_EQ(NanosecondsOfMicros("1428625731516.983"), 1428625731516983);
  EXPECT_EQ(NanosecondsOfMicros("1751410836000000.123"), 1751410836000000123);
  EXPECT_EQ(NanosecondsOfMicros("0.5"), 500);
  EXPECT_EQ(NanosecondsOfMicros("622.25"), 622250);
  EXPECT_EQ(NanosecondsOfMicros("-3"), -3000);
}

TEST(NanosecondsTest, FurtherDigitsAreRounded) {
  EXPECT_EQ(NanosecondsOfMicros("1.0004"), 1000);
  EXPECT_EQ(NanosecondsOfMicros("1.0005"), 1001);
  EXPECT_EQ(NanosecondsOfMicros("16269.809000000001"), 16269809);
}

TEST(NanosecondsTest, ExponentsAreRead) {
  EXPECT_EQ(NanosecondsOfMicros("1.5e3"), 1'500'000);
  EXPECT_EQ(NanosecondsOfMicros("1.669783687464181e15"), 1669783687464181000);
  EXPECT_EQ(NanosecondsOfMicros("5e-1"), 500);
}

TEST(NanosecondsTest, WhatIsNoTimeIsNothing) {
  for (const char* text : {"", "null", "abc", "1.2.3", "1e", "1e999", "99999999999999999999", "-", "."}) {
    EXPECT_EQ(NanosecondsOfMicros(text), std::nullopt) << text;
  }
}

TEST(ParseEventTest, FieldsComeInAnyOrderAndUnknownOnesAreSkipped) {
  const std::string text = Padded(
      R"( "args": {"a": [1, {"b": "}"}], "c": "\"]"}, "x": null, "name": "a\"b", "ts": 1.5 , "ph":"X", "dur":2 } rest)");
  RawEvent event;
  const char* after = nullptr;
  ASSERT_EQ(ParseEvent(text.data(), text.data() + text.size() - kPadding, &event, &after), Parse::kOk);
  EXPECT_EQ(event.phase, 'X');
  EXPECT_EQ(event.name, R"(a\"b)");
  EXPECT_EQ(event.ts, "1.5");
  EXPECT_EQ(event.dur, "2");
  EXPECT_EQ(event.args, R"({"a": [1, {"b": "}"}], "c": "\"]"})");
  EXPECT_EQ(std::string(after, 5), " rest");
}

TEST(ParseEventTest, ATextThatEndsAnywhereInsideIsToldFromABrokenOne) {
  const std::string whole = R"("ph": "X", "name": "k\\", "args": {"a": [1, 2]}, "ts": 12})";
  for (size_t length = 0; length < whole.size(); ++length) {
    const std::string text = Padded(whole.substr(0, length));
    RawEvent event;
    const char* after = nullptr;
    EXPECT_EQ(ParseEvent(text.data(), text.data() + length, &event, &after), Parse::kTextEnded) << length;
  }
  const std::string broken = Padded(R"("ph" "X"})");
  RawEvent event;
  const char* after = nullptr;
  EXPECT_EQ(ParseEvent(broken.data(), broken.data() + 9, &event, &after), Parse::kBroken);
}

TEST(MembersTest, WalkAnObject) {
  const std::string text = Padded(R"({"correlation": 12, "name": "x y", "grid": [1, 2, 3]})");
  Members members(std::string_view(text).substr(0, text.size() - kPadding));
  ASSERT_TRUE(members.Next());
  EXPECT_EQ(members.key(), "correlation");
  EXPECT_EQ(Integer(members.value()), 12);
  ASSERT_TRUE(members.Next());
  EXPECT_EQ(members.value(), "x y");
  ASSERT_TRUE(members.Next());
  EXPECT_EQ(members.value(), "[1, 2, 3]");
  EXPECT_FALSE(members.Next());
}

TEST(MembersTest, WhatIsNoObjectHasNone) {
  for (const std::string_view text : {std::string_view(), std::string_view("7"), std::string_view("[1]")}) {
    Members members(text);
    EXPECT_FALSE(members.Next());
  }
}

TEST(UnescapedTest, NamesBecomeCleanText) {
  EXPECT_EQ(Unescaped(R"(a\"b\\c\/d)"), "a\"b\\c/d");
  EXPECT_EQ(Unescaped(R"(tab\there)"), "tab here");
  EXPECT_EQ(Unescaped(R"(\u00e9\u4e2d)"), "\u00e9\u4e2d");
  EXPECT_EQ(Unescaped("raw\x01"
                      "control"),
            "raw control");
  EXPECT_EQ(Unescaped("bad\xff\xc3utf8"), "bad\ufffd\ufffdutf8");
  EXPECT_EQ(Unescaped("\u00fcml\u00e4ut"), "\u00fcml\u00e4ut");
  EXPECT_EQ(Unescaped("end\\"), "end\\");
}

// The window: the same values come out whatever its size, and a value larger than it makes it grow.
TEST(JsonWindowTest, ValuesAreWholeWhateverTheWindowIs) {
  std::string text = "[";
  for (int i = 0; i < 200; ++i) text += "{\"n\": \"" + std::string(static_cast<size_t>(i), 'x') + "\"},";
  text += "1]";
  for (const size_t size : {16, 64, 100, 1000, 100'000}) {
    JsonWindow window(BytesInMemory(text), size);
    ASSERT_EQ(window.Peek(), '[');
    window.MoveTo(window.cursor() + 1);
    for (int i = 0; i < 200; ++i) {
      const std::string_view value = window.TakeValue();
      ASSERT_EQ(value.size(), static_cast<size_t>(i) + 9) << "window " << size;
      ASSERT_EQ(window.Peek(), ',');
      window.MoveTo(window.cursor() + 1);
    }
    EXPECT_EQ(window.TakeValue(), "1");
  }
}

TEST(JsonWindowTest, SkipsAValueThatIsLargerThanTheWindow) {
  const std::string text = "{\"a\": [\"" + std::string(5000, ']') + "\\\"\"]} 7 ";
  JsonWindow window(BytesInMemory(text), 64);
  EXPECT_TRUE(window.SkipAny());
  EXPECT_EQ(window.TakeValue(), "7");
}

}  // namespace
}  // namespace fullbore::ingest::kineto
