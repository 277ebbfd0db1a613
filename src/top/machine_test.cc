#include "top/machine.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "measure/probe/testing/fake_machine.h"

namespace fullbore::top {
namespace {

TEST(MachineReaderTest, ReadsACannedMachineAndTheRatesBetweenTwoLooks) {
  probe::FakeMachine files;
  files.Write("/proc/meminfo", "MemTotal: 16000000 kB\nMemFree: 1000 kB\nMemAvailable: 4000000 kB\n");
  files.Write("/proc/loadavg", "1.50 1.0 0.5 1/100 1234\n");
  files.Write("/proc/stat", "cpu  100 0 0 100 0 0 0 0 0 0\ncpu0 100 0 0 100 0 0 0 0 0 0\n");
  const auto process = [&](int ticks) {
    files.Write("/proc/7/stat",
                "7 (python) R 1 7 7 0 -1 0 0 0 0 0 " + std::to_string(ticks) +
                    " 0 0 0 20 0 3 0 50 1000000 2500 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
    files.Write("/proc/7/cmdline", std::string("python\0train.py\0", 16));
  };
  process(100);
  MachineReader reader(files.root());
  (void)reader.Read(kNsPerSecond);
  files.Write("/proc/stat", "cpu  150 0 0 150 0 0 0 0 0 0\ncpu0 150 0 0 150 0 0 0 0 0 0\n");
  process(200);
  const Machine machine = reader.Read(2 * kNsPerSecond);
  EXPECT_EQ(machine.load1, 1.5);
  EXPECT_NEAR(machine.cpu.value_or(0), 0.5, 0.01);
  EXPECT_NEAR(machine.memory_total.value_or(0), 16e6 * 1024, 2e6);
  ASSERT_EQ(machine.processes.size(), 1U);
  EXPECT_EQ(machine.processes[0].command, "python train.py");
  EXPECT_NEAR(machine.processes[0].cores, 1.0, 0.01);
  EXPECT_EQ(machine.processes[0].threads, 3);
}

TEST(MachineReaderTest, WhatIsNotThereIsAbsent) {
  const probe::FakeMachine files;
  MachineReader reader(files.root());
  const Machine machine = reader.Read(kNsPerSecond);
  EXPECT_FALSE(machine.cpu);
  EXPECT_TRUE(machine.processes.empty());
}

}  // namespace
}  // namespace fullbore::top
