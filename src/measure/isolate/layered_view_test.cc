#include "measure/isolate/layered_view.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "base/fd.h"
#include "base/testing/scratch_directory.h"
#include "measure/isolate/protection.h"
#include "measure/isolate/scratch.h"

namespace fullbore::isolate {
namespace {

namespace fs = std::filesystem;

std::string TextOf(const std::string& path) {
  const auto text = ReadFile(path);
  return text ? *text : "(" + text.error().text + ")";
}

// As a process that this user has started: one that was root is closed to itself in /proc.
bool BecomeNobody() {
  return setgroups(0, nullptr) == 0 && setresgid(65534, 65534, 65534) == 0 &&
         setresuid(65534, 65534, 65534) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0;
}

class LayeredViewTest : public ::testing::TestWithParam<bool> {  // true: not as root
 protected:
  void SetUp() override {
    if (GetParam() && geteuid() != 0) GTEST_SKIP() << "the same as not as root";
#ifdef __SANITIZE_THREAD__
    if (GetParam())
      GTEST_SKIP() << "a process with threads makes no user namespace, and this sanitizer has one";
#endif
    const auto found = FindProtection(files_.path());
    ASSERT_TRUE(found);
    if (found->protection != Protection::kView) GTEST_SKIP() << found->why_no_view;
    files_.Write("data/in.bin", "precious");
    files_.Write("data/deep/er", "precious");
    files_.Write("log", "precious\n");
    fs::create_directory_symlink("data", files_ / "latest");
    fs::create_hard_link(files_ / "log", files_ / "other-name");
    fs::create_directories(files_ / "scratch");
    Give(files_.path());
    for (const auto& each : fs::recursive_directory_iterator(files_.path())) Give(each.path());
  }

  // To the user that works in the view.
  static void Give(const std::string& path) {
    if (GetParam() && lchown(path.c_str(), 65534, 65534) != 0) std::perror(path.c_str());
  }

  // What `work` returns in a process with a view of its own; 99 where it could not get one.
  int InView(const std::function<bool()>& work, const LayeredView& view) const {
    const pid_t pid = fork();
    if (pid == 0) {
      if (GetParam() && !BecomeNobody()) _exit(98);
      const auto entered = Enter(view);
      if (!entered) std::fprintf(stderr, "%s\n", entered.error().text.c_str());
      _exit(!entered ? 99 : work() ? 0 : 1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
  }
  int InView(const std::function<bool()>& work) const {
    return InView(work, {files_ / "scratch", {}, {}, {}});
  }

  static bool Append(const std::string& path) {
    const bool appended = static_cast<bool>(std::ofstream(path, std::ios::app) << "more" << std::flush);
    if (!appended) std::perror(path.c_str());
    return appended;
  }

  ScratchDirectory files_;
};

TEST_P(LayeredViewTest, WhatIsWrittenIsReadUnderEveryNameAndChangesNothing) {
  ASSERT_EQ(InView([&] {
              return Append(files_ / "data/in.bin") && TextOf(files_ / "latest/in.bin") == "preciousmore" &&
                     Append(files_ / "latest/new") && TextOf(files_ / "data/new") == "more";
            }),
            0);
  EXPECT_EQ(TextOf(files_ / "data/in.bin"), "precious");
  EXPECT_EQ(TextOf(files_ / "log"), "precious\n");
  EXPECT_FALSE(fs::exists(files_ / "data/new"));
}

TEST_P(LayeredViewTest, TwoNamesOfAFileStayOneForRootAndAreTwoForOthers) {
  const std::string seen = GetParam() || geteuid() != 0 ? "precious\n" : "precious\nmore";
  EXPECT_EQ(InView([&] { return Append(files_ / "log") && TextOf(files_ / "other-name") == seen; }), 0);
  EXPECT_EQ(TextOf(files_ / "other-name"), "precious\n");
}

TEST_P(LayeredViewTest, RemovingAndChangingMetadataChangesNothing) {
  struct stat before {
  }, after{};
  ASSERT_EQ(stat((files_ / "log").c_str(), &before), 0);
  ASSERT_EQ(
      InView([&] {
        const std::string log = files_ / "log";
        const bool changed = chmod(log.c_str(), 0) == 0 && utimensat(AT_FDCWD, log.c_str(), nullptr, 0) == 0;
        return changed && fs::remove_all(files_ / "data") > 0 && fs::create_directory(files_ / "data") &&
               fs::is_empty(files_ / "data") && fs::remove(log);
      }),
      0);
  ASSERT_EQ(stat((files_ / "log").c_str(), &after), 0);
  EXPECT_EQ(before.st_mode, after.st_mode);
  EXPECT_EQ(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
  EXPECT_EQ(TextOf(files_ / "data/deep/er"), "precious");
}

TEST_P(LayeredViewTest, ReadingCopiesNothing) {
  Give(files_.Write("data/large", std::string(4 << 20, 'x')));
  ASSERT_EQ(InView([&] { return TextOf(files_ / "data/large").size() == 4 << 20; }), 0);
  int64_t bytes = 0;
  for (const auto& each : fs::recursive_directory_iterator(files_ / "scratch/upper")) {
    if (each.is_regular_file()) bytes += static_cast<int64_t>(each.file_size());
  }
  EXPECT_LT(bytes, 1 << 20);
}

TEST_P(LayeredViewTest, SharedMemoryIsLayeredInMemory) {
  const std::string name = "/dev/shm/fullbore-test-" + std::to_string(getpid());
  std::ofstream(name) << "staged";
  Give(name);
  EXPECT_EQ(InView([&] { return Append(name) && TextOf(name) == "stagedmore" && Append(name + ".new"); }), 0);
  EXPECT_EQ(TextOf(name), "staged");
  EXPECT_FALSE(fs::exists(name + ".new"));
  fs::remove(name);
}

TEST_P(LayeredViewTest, DevicesAndTheWorkingDirectoryAreWhatTheyWere) {
  const std::string here = fs::current_path();
  EXPECT_EQ(InView([&] {
              return Append("/dev/null") && fs::current_path() == here && fs::exists("/proc/self/stat");
            }),
            0);
}

TEST_P(LayeredViewTest, AChannelIsWrittenThrough) {
  ASSERT_EQ(InView([&] { return Append(files_ / "data/in.bin") && Append(files_ / "log"); },
                   {files_ / "scratch", {files_ / "data"}, {}, {}}),
            0);
  EXPECT_EQ(TextOf(files_ / "data/in.bin"), "preciousmore");
  EXPECT_EQ(TextOf(files_ / "log"), "precious\n");
}

TEST_P(LayeredViewTest, ACacheIsKeptFromOneViewToTheNextBesideTheRealOne) {
  const LayeredView first = {files_ / "scratch", {}, {{files_ / "data", files_ / "kept"}}, {}};
  LayeredView second = first;
  second.directory = files_ / "scratch2";
  for (const char* each : {"kept", "scratch2"}) {
    fs::create_directory(files_ / each);
    Give(files_ / each);
  }
  ASSERT_EQ(InView([&] { return Append(files_ / "data/downloaded"); }, first), 0);
  EXPECT_EQ(InView([&] { return TextOf(files_ / "data/downloaded") == "more"; }, second), 0);
  EXPECT_FALSE(fs::exists(files_ / "data/downloaded"));
}

TEST_P(LayeredViewTest, ADirectoryBelowSomebodyElsesIsWrittenTo) {
  files_.Write("others/mine/old", "precious");
  fs::permissions(files_ / "others", fs::perms::all);
  Give(files_ / "others/mine");
  Give(files_ / "others/mine/old");
  const std::string mine = files_ / "others/mine";
  EXPECT_EQ(InView(
                [&] {
                  return Append(mine + "/new") && TextOf(mine + "/old") == "precious" &&
                         Append(mine + "/old");
                },
                {files_ / "scratch", {}, {}, {mine}}),
            0);
  EXPECT_EQ(TextOf(mine + "/old"), "precious");
  EXPECT_FALSE(fs::exists(mine + "/new"));
}

TEST_P(LayeredViewTest, WhatWasWrittenIsFoundFromOutside) {
  const std::string log = files_ / "log", unread = files_ / "data/in.bin";
  EXPECT_EQ(WrittenAs(files_ / "scratch", log), "");
  ASSERT_EQ(InView([&] { return Append(log); }), 0);
  EXPECT_EQ(TextOf(WrittenAs(files_ / "scratch", log)), "precious\nmore");
  EXPECT_FALSE(fs::exists(WrittenAs(files_ / "scratch", unread)));
}

INSTANTIATE_TEST_SUITE_P(As, LayeredViewTest, ::testing::Bool(),
                         [](const auto& each) { return each.param ? "Nobody" : "OneSelf"; });

}  // namespace
}  // namespace fullbore::isolate
