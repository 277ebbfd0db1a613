#include "measure/stacks/target.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/temporary_directory.h"

namespace fullbore::stacks {
namespace {

namespace fs = std::filesystem;

// A machine of canned files on which process 7 belongs to user 1000. Its memory cannot be opened where the file is
// missing, as the kernel refuses to open it.
class TargetTest : public testing::Test {
 protected:
  TargetTest() : root_(std::move(*TemporaryDirectory::Make())) {
    Link("self/ns/pid", "pid:[1]");
    Process(7, "/usr/bin/python3.11");
  }
  std::string Path(const std::string& name) const { return root_.path() + "/proc/" + name; }
  void Write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(Path(name)).parent_path());
    std::ofstream(Path(name)) << text;
  }
  void Link(const std::string& name, const std::string& to) {
    fs::create_directories(fs::path(Path(name)).parent_path());
    fs::remove(Path(name));
    fs::create_symlink(to, Path(name));
  }
  void Process(int pid, const std::string& exe) {
    const std::string place = std::to_string(pid) + "/";
    Write(place + "status", "Name:\tpython\nState:\tS (sleeping)\nUid:\t1000\t1000\t1000\t1000\n");
    Write(place + "maps", "");
    Write(place + "mem", "");
    Write(place + "cmdline", std::string("python\0train.py\0", 16));
    Link(place + "exe", exe);
    Link(place + "cwd", "/home/u");
    Link(place + "ns/pid", "pid:[1]");
  }
  Error Refused(const Asker& asker = {1000, false}, int64_t pid = 7) {
    const auto target = Examine(root_.path(), pid, asker);
    EXPECT_FALSE(target.ok());
    return target.ok() ? Error{} : target.error();
  }
  void MayNotBeRead() { fs::remove(Path("7/mem")); }

  TemporaryDirectory root_;
};

TEST_F(TargetTest, AProcessThatWeMayReadIsTaken) {
  const auto target = Examine(root_.path(), 7, {1000, false});
  ASSERT_TRUE(target.ok()) << target.error().text;
  EXPECT_EQ(target->python, "/usr/bin/python3.11");
  EXPECT_EQ(target->directory, "/home/u");
  EXPECT_EQ(target->command, (std::vector<std::string>{"python", "train.py"}));
}

TEST_F(TargetTest, NoSuchProcessIsSaid) {
  EXPECT_EQ(Refused({1000, false}, 8).text, "there is no process 8");
  EXPECT_EQ(Refused({1000, false}, 8).code, ErrorCode::kNotFound);
}

TEST_F(TargetTest, AProcessThatHasEndedIsSaid) {
  Write("7/status", "Name:\tpython\nState:\tZ (zombie)\nUid:\t1000\n");
  EXPECT_EQ(Refused().text, "process 7 has ended already");
}

TEST_F(TargetTest, AnotherUsersProcessNamesThatUser) {
  MayNotBeRead();
  const Error error = Refused({4242, false});
  EXPECT_NE(error.text.find("it belongs to the user"), std::string::npos);
  EXPECT_NE(error.hint.find("sudo fullbore explain --pid 7"), std::string::npos);
}

TEST_F(TargetTest, PtraceScopeIsNamedWithItsValueAndWhatChangesIt) {
  MayNotBeRead();
  Write("sys/kernel/yama/ptrace_scope", "1\n");
  EXPECT_NE(Refused().text.find("ptrace_scope is 1"), std::string::npos);
  EXPECT_NE(Refused().hint.find("kernel.yama.ptrace_scope=0"), std::string::npos);
  Write("sys/kernel/yama/ptrace_scope", "3\n");
  EXPECT_NE(Refused().hint.find("fullbore run"), std::string::npos)
      << "nothing else helps until the next boot";
}

TEST_F(TargetTest, AProcessInAContainerIsSaidToBeInOne) {
  MayNotBeRead();
  Link("7/ns/pid", "pid:[2]");
  EXPECT_NE(Refused().text.find("runs in a container"), std::string::npos);
  EXPECT_NE(Refused().hint.find("--cap-add SYS_PTRACE"), std::string::npos);
}

TEST_F(TargetTest, AMissingCapabilityIsWhatRemains) {
  MayNotBeRead();
  EXPECT_NE(Refused().text.find("SYS_PTRACE"), std::string::npos);
  EXPECT_NE(Refused().hint.find("fullbore run"), std::string::npos);
}

TEST_F(TargetTest, WhoMayTraceAllIsNotAskedForMore) {
  MayNotBeRead();
  EXPECT_TRUE(Examine(root_.path(), 7, {0, true}).ok());
}

TEST_F(TargetTest, AnotherProgramIsRefusedAndItsPythonChildNamed) {
  Link("7/exe", "/usr/bin/bash");
  EXPECT_NE(Refused().text.find("does not run Python"), std::string::npos);
  Write("7/task/7/children", "9 ");
  Process(9, "/opt/python3");
  EXPECT_EQ(Refused().hint, "its child 9 does: fullbore explain --pid 9");
}

TEST_F(TargetTest, AProgramThatEmbedsPythonIsPython) {
  Link("7/exe", "/opt/trainer");
  Write("7/maps", "7f00-7f01 r-xp 0 0:0 1 /usr/lib/libpython3.11.so.1.0\n");
  EXPECT_TRUE(Examine(root_.path(), 7, {1000, false}).ok());
}

TEST_F(TargetTest, WithoutPySpyItsInstallationIsTheNextStep) {
  const char* path = std::getenv("PATH");
  const std::string before = path ? path : "";
  setenv("PATH", root_.path().c_str(), 1);
  const auto missing = FindPySpy({7, root_.path() + "/python", "/", {}});
  setenv("PATH", before.c_str(), 1);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().hint, "pip install py-spy");
  EXPECT_NE(missing.error().text.find(root_.path()), std::string::npos) << "where it was looked for";
}

TEST_F(TargetTest, FindsPySpyBesideTheProcesssOwnPython) {
  const std::string beside = root_.path() + "/py-spy";
  std::ofstream(beside) << "";
  fs::permissions(beside, fs::perms::owner_all);
  EXPECT_EQ(FindPySpy({7, "/usr/bin/python3", "/", {root_.path() + "/python", "train.py"}}).value(), beside);
}

}  // namespace
}  // namespace fullbore::stacks
