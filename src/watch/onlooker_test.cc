#include "watch/onlooker.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/temporary_directory.h"

namespace fullbore::watch {
namespace {

constexpr char kReport[] =
    R"({"window": {"steps": 80}, "findings": [{"id": "input-bound", "severity": "critical", "title": "It waits.",
        "change": "X", "speedup": {"expected": 1.5, "low": 1.4, "high": 1.6}}]})";

class OnlookerTest : public ::testing::Test {
 protected:
  // An explainer: a shell script.
  std::string Explainer(const std::string& does) {
    const std::string path = directory_->path() + "/explainer";
    std::ofstream(path) << "#!/bin/sh\n" << does << "\n";
    chmod(path.c_str(), 0700);
    return path;
  }
  std::string Printing(const std::string& text) {
    std::ofstream(directory_->path() + "/report") << text;
    return Explainer("cat " + directory_->path() + "/report; echo \"$@\" >> " + asked());
  }
  std::string asked() const { return directory_->path() + "/asked"; }

  // Ticks for as long as needed for so many lines, or until patience ends.
  static std::vector<std::string> LinesOf(Onlooker& onlooker, size_t lines, double patience_s = 20) {
    std::vector<std::string> said;
    const int64_t begin_ns = MonotonicNs();
    while (said.size() < lines && MonotonicNs() - begin_ns < patience_s * 1e9) {
      if (auto line = onlooker.Tick("/runs/a.fbr", MonotonicNs())) said.push_back(*line);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return said;
  }

  Result<TemporaryDirectory> directory_ = TemporaryDirectory::Make();
};

TEST_F(OnlookerTest, SaysWhatTheExplainerFound) {
  Onlooker onlooker(Printing(kReport), kNsPerMs);
  const auto said = LinesOf(onlooker, 1);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0], "it waits; X would bring 1.50x (1.40x to 1.60x)");
  std::ifstream asked_file(asked());
  std::string words;
  std::getline(asked_file, words);
  EXPECT_EQ(words, "explain --json - /runs/a.fbr");
}

TEST_F(OnlookerTest, AnExplainerThatFailsFoundNothing) {
  (void)Printing(kReport);  // what it has said before it fails does not count
  const std::string says = "cat " + directory_->path() + "/report; ";
  for (const std::string& does : {says + "exit 1", says + "kill -9 $$", std::string("echo no report")}) {
    Onlooker onlooker(Explainer(does), kNsPerMs);
    EXPECT_TRUE(LinesOf(onlooker, 1, 0.2).empty()) << does;
  }
  Onlooker missing("/nowhere/fullbore", kNsPerMs);
  EXPECT_TRUE(LinesOf(missing, 1, 0.1).empty());
}

TEST_F(OnlookerTest, AReportLargerThanAPipeIsRead) {
  Onlooker onlooker(Printing(std::string(1 << 20, ' ') + kReport), kNsPerMs);
  EXPECT_EQ(LinesOf(onlooker, 1).size(), 1U);
}

TEST_F(OnlookerTest, LeavesNoProcessBehind) {
  const std::string pid_file = directory_->path() + "/pid";
  {
    Onlooker onlooker(Explainer("echo $$ > " + pid_file + ".part; mv " + pid_file + ".part " + pid_file +
                                "; exec sleep 100"),
                      kNsPerMs);
    while (access(pid_file.c_str(), F_OK) != 0) (void)LinesOf(onlooker, 1, 0.01);
  }
  pid_t pid = 0;
  std::ifstream(pid_file) >> pid;
  ASSERT_GT(pid, 0);
  EXPECT_NE(kill(pid, 0), 0);
}

}  // namespace
}  // namespace fullbore::watch
