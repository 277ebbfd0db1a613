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

// Where py-spy is looked for: with a $PATH of one directory, empty unless a test puts something there, and beside
// the process's own Python.
class PySpyTest : public TargetTest {
 protected:
  PySpyTest() {
    fs::create_directory(Place("path"));
    fs::create_directory(Place("venv"));
    setenv("PATH", Place("path").c_str(), 1);
  }
  ~PySpyTest() override { setenv("PATH", before_.c_str(), 1); }
  std::string Place(const std::string& name) const { return root_.path() + "/" + name; }
  std::string Put(const std::string& name) {
    std::ofstream(Place(name)) << "";
    fs::permissions(Place(name), fs::perms::owner_all);
    return Place(name);
  }
  Result<std::string> Find() {
    return FindPySpy({7, "/usr/bin/python3", "/", {Place("venv/python"), "train.py"}});
  }

  const std::string before_ = std::getenv("PATH") ? std::getenv("PATH") : "";
};

TEST_F(PySpyTest, WhereThereIsNoneItsInstallationIsTheNextStep) {
  const auto missing = FindPySpy({7, Place("venv/python"), "/", {}});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().hint, "pip install py-spy");
  EXPECT_NE(missing.error().text.find(Place("venv")), std::string::npos) << "where it was looked for";
}

TEST_F(PySpyTest, IsFoundBesideTheProcesssOwnPython) {
  const std::string beside = Put("venv/py-spy");
  EXPECT_EQ(Find().value(), beside);
  const std::string in_path = Put("path/py-spy");
  EXPECT_EQ(Find().value(), in_path) << "$PATH comes first: it is ours";
}

TEST_F(PySpyTest, OneThatAnotherUserCouldHavePutBesideThePythonIsNotRun) {
  Put("venv/py-spy");
  fs::permissions(Place("venv"), fs::perms::all);
  const auto refused = Find();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kPermission);
  EXPECT_NE(refused.error().text.find(Place("venv/py-spy")), std::string::npos);
  EXPECT_NE(refused.error().text.find("can be written to by everybody"), std::string::npos);
  EXPECT_NE(refused.error().hint.find("$PATH"), std::string::npos) << "the next step";
  const std::string in_path = Put("path/py-spy");
  EXPECT_EQ(Find().value(), in_path);
}

TEST_F(PySpyTest, ALinkIsRunByWhatItLeadsTo) {
  const std::string there = Put("path/spy");
  fs::create_symlink(there, Place("venv/py-spy"));
  EXPECT_EQ(Find().value(), there);
  fs::permissions(Place("path"), fs::perms::all);
  EXPECT_FALSE(Find().ok());
}

}  // namespace
}  // namespace fullbore::stacks
