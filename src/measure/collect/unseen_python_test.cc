#include "measure/collect/unseen_python.h"

#include <gmock/gmock.h>

namespace fullbore::collect {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kHook[] = "/opt/fullbore/site";

std::string Why(const std::vector<std::string>& words, const std::string& path = kHook) {
  return WhyUnseen(words, {"HOME=/root", "PYTHONPATH=" + path}, kHook);
}

TEST(WhyUnseenTest, NothingKeepsTheHookOutOfAnOrdinaryPython) {
  EXPECT_THAT(Why({"python", "train.py", "-I"}), IsEmpty()) << "an argument of the script";
  EXPECT_THAT(Why({"/usr/bin/python3.11", "-u", "-W", "-I", "-m", "train", "-E"}), IsEmpty());
  EXPECT_THAT(Why({"python3", "-c", "import this", "-S"}), IsEmpty());
  EXPECT_THAT(Why({"python3", "-Xdev", "-OO", "-s", "-B", "train.py"}), IsEmpty());
  EXPECT_THAT(Why({"python3", "-", "-I"}), IsEmpty());
  EXPECT_THAT(Why({"python3", "train.py"}, std::string(kHook) + "::/lib"), IsEmpty());
}

TEST(WhyUnseenTest, OptionsThatKeepItOutAreNamed) {
  EXPECT_THAT(Why({"python", "-I", "train.py"}), HasSubstr("'train.py' was started with python -I"));
  EXPECT_THAT(Why({"/usr/bin/python3", "-sE", "/home/me/train.py"}),
              HasSubstr("'train.py' was started with python -E"));
  EXPECT_THAT(Why({"python3.12", "-uS", "-m", "package.train"}),
              HasSubstr("'package.train' was started with python -S"));
  EXPECT_THAT(Why({"python3", "-X", "dev", "-W", "error", "-IB", "x.py"}), HasSubstr("python -I"));
  EXPECT_THAT(Why({"python3", "--check-hash-based-pycs", "always", "-E", "x.py"}), HasSubstr("python -E"));
  EXPECT_THAT(Why({"python3", "-Ic", "import torch"}),
              HasSubstr("a Python process was started with python -I"));
}

TEST(WhyUnseenTest, APythonpathThatWasReplacedIsNamed) {
  EXPECT_THAT(Why({"python", "train.py"}, "/lib"), HasSubstr("PYTHONPATH"));
  EXPECT_THAT(WhyUnseen({"python", "train.py"}, {}, kHook), HasSubstr("PYTHONPATH"));
}

TEST(WhyUnseenTest, OtherProgramsMeanOtherThingsByThoseLetters) {
  EXPECT_THAT(Why({"sed", "-E", "s/a/b/"}, ""), IsEmpty());
  EXPECT_THAT(Why({}, ""), IsEmpty());
}

}  // namespace
}  // namespace fullbore::collect
