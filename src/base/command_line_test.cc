#include "base/command_line.h"

#include <gmock/gmock.h>

namespace fullbore {
namespace {

using testing::ElementsAre;

std::vector<std::string> Words(std::string_view text) {
  auto words = WordsOfCommand(text);
  return words ? *words : std::vector<std::string>{words.error().text};
}

TEST(CommandLineTest, SplitsAsAShellDoes) {
  EXPECT_THAT(Words("python  train.py --lr 0.1 "), ElementsAre("python", "train.py", "--lr", "0.1"));
  EXPECT_THAT(Words(R"(python 'my train.py' --name "a b"c '')"),
              ElementsAre("python", "my train.py", "--name", "a bc", ""));
  EXPECT_THAT(Words(R"(python my\ train.py "say \"x\" \n")"),
              ElementsAre("python", "my train.py", R"(say "x" \n)"));
  EXPECT_THAT(Words("python -c '$HOME; a && b' a=b{c}"),
              ElementsAre("python", "-c", "$HOME; a && b", "a=b{c}"));
}

TEST(CommandLineTest, ABackslashAtTheEndOfALineJoinsItWithTheNext) {
  EXPECT_THAT(Words("python train.py \\\n  --fused"), ElementsAre("python", "train.py", "--fused"));
  EXPECT_THAT(Words("python \"a\\\nb\" c\\\nd"), ElementsAre("python", "ab", "cd"));
  EXPECT_THAT(Words("python 'a\\\nb'"), ElementsAre("python", "a\\\nb")) << "as it is in single quotes";
}

TEST(CommandLineTest, VariablesInFrontGoThroughEnv) {
  EXPECT_THAT(Words("OMP_NUM_THREADS=1 A='b c' python train.py"),
              ElementsAre("env", "OMP_NUM_THREADS=1", "A=b c", "python", "train.py"));
  EXPECT_THAT(Words("python train.py x=1"), ElementsAre("python", "train.py", "x=1")) << "an argument";
  EXPECT_THAT(Words("--x=1 python"), ElementsAre("--x=1", "python")) << "no name of a variable";
}

TEST(CommandLineTest, WhatOnlyAShellUnderstandsIsGivenToOne) {
  for (const char* text : {"cd x && python train.py", "python $SCRIPT", "python \"$SCRIPT\"", "python *.py",
                           "python ~/train.py", "python train.py > log", "make; python train.py"})
    EXPECT_THAT(Words(text), ElementsAre("/bin/sh", "-c", text));
  EXPECT_THAT(Words("python a~b '~/c'"), ElementsAre("python", "a~b", "~/c")) << "not at the beginning";
}

TEST(CommandLineTest, WhatIsNoCommandIsAnError) {
  for (const char* text : {"", "  ", "python 'train.py", "python \"train.py"})
    EXPECT_FALSE(WordsOfCommand(text).ok()) << text;
}

TEST(CommandLineTest, WordsMakeALineThatSplitsIntoThemAgain) {
  const std::vector<std::string> words = {"python", "my train.py", "it's", "", "--lr=0.1", "$HOME"};
  EXPECT_EQ(ShellLine(words), R"(python 'my train.py' 'it'\''s' '' --lr=0.1 '$HOME')");
  EXPECT_EQ(WordsOfCommand(ShellLine(words)).value(), words);
  EXPECT_EQ(ShellLine({}), "");
}

}  // namespace
}  // namespace fullbore
