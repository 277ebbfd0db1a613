#include "base/cores.h"

#include <gtest/gtest.h>

#include "base/testing/scratch_directory.h"

namespace fullbore {
namespace {

class Machine {
 public:
  void Write(const std::string& path, const std::string& text) { root_.Write(path, text); }
  std::string root() const { return root_.path(); }

 private:
  ScratchDirectory root_;  // of this process alone: tests run beside each other
};

TEST(UsableCores, IsAtLeastOneOnTheMachineAtHand) { EXPECT_GE(UsableCores(), 1); }

TEST(UsableCores, KeepsToTheTightestQuotaAbove) {
  Machine machine;
  machine.Write("proc/self/cgroup", "0::/jobs/mine\n");
  machine.Write("sys/fs/cgroup/jobs/mine/cpu.max", "max 100000\n");
  machine.Write("sys/fs/cgroup/jobs/cpu.max", "50000 100000\n");
  EXPECT_EQ(UsableCores(machine.root()), 1);
}

TEST(UsableCores, ReadsAContainersOwnLimitAtTheTop) {
  Machine machine;
  machine.Write("proc/self/cgroup", "0::/\n");
  machine.Write("sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(UsableCores(machine.root()), 1);
}

TEST(UsableCores, IgnoresAQuotaThatDoesNotParse) {
  Machine machine;
  machine.Write("proc/self/cgroup", "0::/\n");
  machine.Write("sys/fs/cgroup/cpu.max", "what 0\n");
  EXPECT_EQ(UsableCores(machine.root()), UsableCores("/nowhere"));
}

}  // namespace
}  // namespace fullbore
