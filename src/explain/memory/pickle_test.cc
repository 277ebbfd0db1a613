#include "explain/memory/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace fullbore::memory {
namespace {

using ::testing::HasSubstr;
using std::string_literals::operator""s;

// pickle.dumps({"segments": [{"size": 300, "name": "a"}, {"size": -5, "name": "a"}], "half": 0.5, "big": 1 << 40,
//               "on": True, "none": None, "pair": (1, 2)}, protocol=4)
const std::string kSample =
    "\x80\x04\x95\x74\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x08segments\x94]\x94(}\x94(\x8c\x04size\x94M,\x01\x8c"
    "\x04name\x94\x8c\x01"
    "a\x94u}\x94(h\x04J\xfb\xff\xff\xffh\x05h\x06ue\x8c\x04half\x94G?\xe0\x00\x00\x00\x00\x00\x00\x8c\x03"
    "big\x94\x8a\x06\x00\x00\x00\x00\x00\x01\x8c\x02on\x94\x88\x8c\x04none\x94N\x8c\x04pair\x94K\x01K\x02\x86\x94u."s;

std::string ErrorOf(const std::string& bytes) {
  const auto pickle = ReadPickle(bytes);
  return pickle ? "" : pickle.error().text;
}

TEST(PickleTest, ReadsContainersNumbersAndTexts) {
  const auto pickle = ReadPickle(kSample);
  ASSERT_TRUE(pickle.ok()) << pickle.error().text;
  const Value root = pickle->root();
  EXPECT_EQ(root.size(), 6u);
  EXPECT_EQ(root.At("segments").size(), 2u);
  EXPECT_EQ(root.At("segments")[0].At("size").Int(), 300);
  EXPECT_EQ(root.At("segments")[1].At("size").Int(), -5);
  EXPECT_EQ(root.At("half").Number(), 0.5);
  EXPECT_EQ(root.At("big").Int(), int64_t{1} << 40);
  EXPECT_TRUE(root.At("on").IsTrue());
  EXPECT_FALSE(root.At("none").missing());
  EXPECT_EQ(root.At("none").Int(), std::nullopt);
  EXPECT_EQ(root.At("pair")[1].Int(), 2);
}

TEST(PickleTest, KeepsTheIdentityOfWhatIsSharedOnly) {
  const auto pickle = ReadPickle(kSample);
  const Value segments = pickle->root().At("segments");
  EXPECT_EQ(segments[0].At("name").index(), segments[1].At("name").index());
  EXPECT_NE(segments[0].At("size").index(), segments[1].At("size").index());
}

TEST(PickleTest, SaysOfAPathThatIsNotThereThatItIsMissing) {
  const auto pickle = ReadPickle(kSample);
  const Value missing = pickle->root().At("no").At("such")[3];
  EXPECT_TRUE(missing.missing());
  EXPECT_EQ(missing.size(), 0u);
  EXPECT_EQ(missing.Text(), std::nullopt);
}

TEST(PickleTest, IsAnErrorCutShortAnywhere) {
  for (size_t size = 0; size < kSample.size(); ++size)
    EXPECT_FALSE(ReadPickle(std::string_view(kSample).substr(0, size)).ok()) << size;
}

TEST(PickleTest, SaysAtWhichByteItEnds) {
  EXPECT_THAT(ErrorOf(kSample.substr(0, 60)), HasSubstr("the pickle ends in the middle"));
  EXPECT_THAT(ErrorOf(kSample.substr(0, 60)), HasSubstr("byte "));
}

TEST(PickleTest, RunsNothing) {
  EXPECT_THAT(ErrorOf("\x80\x02"s + "cos\nsystem\n(S'true'\ntR."), HasSubstr("imports a name"));
  EXPECT_THAT(ErrorOf("\x80\x04\x8c\x02os\x8c\x06system\x93."s), HasSubstr("imports a name"));
  EXPECT_THAT(ErrorOf("\x80\x04NNR."s), HasSubstr("calls a function"));
  EXPECT_THAT(ErrorOf("\x80\x04NNb."s), HasSubstr("sets the state of an object"));
  EXPECT_THAT(ErrorOf("\x80\x04NN\x81."s), HasSubstr("makes an object of a class"));
}

TEST(PickleTest, TakesAnyDepth) {
  constexpr size_t kDepth = 1'000'000;
  std::string bytes = "\x80\x04"s + std::string(kDepth, ']');
  bytes += std::string(kDepth - 1, 'a') + ".";
  const auto pickle = ReadPickle(bytes);
  EXPECT_THAT(pickle ? "" : pickle.error().text, HasSubstr("in memory"));  // of nothing but empty lists
  std::string tuples = "\x80\x04N"s;
  for (size_t i = 0; i < kDepth; ++i) tuples += "\x85\x94 "s.substr(0, 2) + "\x8c\x08somewhat0";
  tuples += ".";
  EXPECT_TRUE(ReadPickle(tuples).ok());
}

TEST(PickleTest, RefusesWhatFillsTheMemory) {
  EXPECT_THAT(ErrorOf("\x80\x04("s + std::string(4 << 20, '}') + "l."),
              HasSubstr("times its size in memory"));
}

TEST(PickleTest, RefusesAListThatHoldsTooLittle) {
  EXPECT_THAT(ErrorOf("\x80\x04}N\x73."s), HasSubstr("too few values"));
  EXPECT_THAT(ErrorOf("\x80\x04}(Nu."s), HasSubstr("a key without a value"));
  EXPECT_THAT(ErrorOf("\x80\x04Na."s), HasSubstr("too few values"));
  EXPECT_THAT(ErrorOf("\x80\x04]Ns."s), HasSubstr("too few values"));
  EXPECT_THAT(ErrorOf("\x80\x04NNa."s), HasSubstr("another kind"));
  EXPECT_THAT(ErrorOf("\x80\x04h\x05."s), HasSubstr("note 5 was never made"));
  EXPECT_THAT(ErrorOf("\x80\x04Nr\xff\xff\xff\x7f."s), HasSubstr("note"));
}

TEST(PickleTest, ReadsAListThatHoldsItself) {
  const auto pickle = ReadPickle("\x80\x04]\x94h\x00\x61."s);
  ASSERT_TRUE(pickle.ok());
  EXPECT_EQ(pickle->root()[0].index(), pickle->root().index());
}

TEST(PickleTest, ReadsLongsOfAnySize) {
  EXPECT_EQ(ReadPickle("\x80\x04\x8a\x00."s)->root().Int(), 0);
  EXPECT_EQ(ReadPickle("\x80\x04\x8a\x01\xff."s)->root().Int(), -1);
  EXPECT_EQ(ReadPickle("\x80\x04\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01."s)->root().Number(),
            18446744073709551616.0);
}

}  // namespace
}  // namespace fullbore::memory
