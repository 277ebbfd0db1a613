#include "measure/stacks/source.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_directory.h"

namespace fullbore::stacks {
namespace {

class SourceTest : public testing::Test {
 protected:
  SourceTest() : root_(std::move(*TemporaryDirectory::Make())), sources_(root_.path(), "/work") {
    std::filesystem::create_directory(root_.path() + "/work");
    std::ofstream(root_.path() + "/work/train.py") << "import numpy as np, time\n"
                                                      "from os import path as p, listdir\n"
                                                      "x = np.mean(listdir('a(b)'))  # f(\n"
                                                      "time.sleep(1); loss.item(); print(1)\n";
  }
  TemporaryDirectory root_;
  Sources sources_;
};

TEST_F(SourceTest, NamesCallsInFullByTheImportsOfTheFile) {
  EXPECT_EQ(sources_.CallsIn("train.py", 3), (std::vector<std::string>{"numpy.mean", "os.listdir"}));
  EXPECT_EQ(sources_.CallsIn("/work/train.py", 4),
            (std::vector<std::string>{"time.sleep", ".item", "builtins.print"}));
}

TEST_F(SourceTest, FindsTheMethodsOfTheClassAroundALine) {
  std::ofstream(root_.path() + "/work/play.py") << "class Cart(Base):\n"             // 1
                                                   "    speed = 0\n"                 // 2
                                                   "\n"                              // 3
                                                   "    def reset(self):\n"          // 4
                                                   "        pass\n"                  // 5
                                                   "    # of one move\n"             // 6
                                                   "    def step (self, action):\n"  // 7
                                                   "        for _ in range(3):\n"    // 8
                                                   "            self.speed += 1\n"   // 9
                                                   "\n"                              // 10
                                                   "def step(self):\n"               // 11
                                                   "    pass\n";                     // 12
  for (const int line : {2, 5, 7, 9})
    EXPECT_TRUE(sources_.ClassHas("play.py", line, {"step", "reset"})) << line;
  EXPECT_FALSE(sources_.ClassHas("play.py", 9, {"step", "close"}));
  EXPECT_FALSE(sources_.ClassHas("play.py", 12, {"step"}));
  EXPECT_FALSE(sources_.ClassHas("play.py", 99, {"step"}));
}

TEST_F(SourceTest, AFileThatCannotBeReadHasNoLines) {
  EXPECT_EQ(sources_.Line("other.py", 1), "");
  EXPECT_EQ(sources_.Line("train.py", 99), "");
  EXPECT_TRUE(sources_.CallsIn("<string>", 1).empty());
}

}  // namespace
}  // namespace fullbore::stacks
