#include "measure/probe/process/process_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure/probe/testing/fake_machine.h"

namespace fullbore::probe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const double kTicks = static_cast<double>(sysconf(_SC_CLK_TCK));
const auto kPage = static_cast<double>(sysconf(_SC_PAGESIZE));

struct FakeProcess {
  int64_t parent = 1;
  std::string name = "python3";
  char state = 'S';
  int64_t user_ticks = 0;
  int64_t threads = 1;
  int64_t start = 100;
  int64_t pages = 10;
};

class ProcessProbeTest : public ::testing::Test {
 protected:
  void Write(int64_t pid, const FakeProcess& p) {
    const std::string directory = "/proc/" + std::to_string(pid);
    files_.Write(directory + "/stat",
                 std::to_string(pid) + " (" + p.name + ") " + p.state + " " + std::to_string(p.parent) +
                     " 1 1 0 -1 4194304 100 0 0 0 " + std::to_string(p.user_ticks) + " 0 0 0 20 0 " +
                     std::to_string(p.threads) + " 0 " + std::to_string(p.start) + " 5000000 " +
                     std::to_string(p.pages) + " 18446744073709551615 0 0 0\n");
  }
  void WriteDetails(int64_t pid, int64_t switches, int64_t bytes, int64_t pss_kib) {
    const std::string directory = "/proc/" + std::to_string(pid);
    files_.Write(directory + "/status", "Name: x\nThreads: 1\nvoluntary_ctxt_switches:\t" +
                                            std::to_string(switches) + "\nnonvoluntary_ctxt_switches:\t" +
                                            std::to_string(switches) + "\n");
    files_.Write(directory + "/io", "rchar: " + std::to_string(4 * bytes) +
                                        "\nwchar: 0\nread_bytes: " + std::to_string(2 * bytes) +
                                        "\nwrite_bytes: " + std::to_string(bytes) + "\n");
    files_.Write(directory + "/smaps_rollup",
                 "0-1 ---p\nRss: 9 kB\nPss: " + std::to_string(pss_kib) + " kB\n");
  }
  void WriteDelay(int64_t pid, int64_t thread, double seconds) {
    files_.Write("/proc/" + std::to_string(pid) + "/task/" + std::to_string(thread) + "/schedstat",
                 "1000000000 " + std::to_string(Seconds(seconds)) + " 12\n");
  }
  void Mark(int64_t pid, const std::string& run_id) {
    files_.Write("/proc/" + std::to_string(pid) + "/environ",
                 std::string("PATH=/bin\0FULLBORE_RUN=", 23) + run_id + std::string("\0X=1\0", 5));
  }
  void End(int64_t pid) { files_.Remove("/proc/" + std::to_string(pid)); }

  static std::vector<int64_t> Pids(const ProcessProbe& probe) {
    std::vector<int64_t> pids;
    for (const record::Process& process : probe.Processes()) pids.push_back(process.pid);
    return pids;
  }

  FakeMachine files_;
  FakeSink sink_;
};

TEST_F(ProcessProbeTest, FindsTheTreeByParentsAndLeavesOutStrangers) {
  Write(100, {.parent = 1});
  Write(300, {.parent = 400});  // a child whose number is below its parent's
  Write(400, {.parent = 100});
  Write(500, {.parent = 1});
  ProcessProbe probe(files_.machine(100));
  probe.Sample(Seconds(1), sink_);
  EXPECT_THAT(Pids(probe), UnorderedElementsAre(100, 300, 400));
  EXPECT_EQ(sink_.Last("process_count{role=other}"), 3);
  EXPECT_TRUE(probe.IsOurs(300));
  EXPECT_FALSE(probe.IsOurs(500));
}

TEST_F(ProcessProbeTest, FindsReparentedProcessesByTheirEnvironment) {
  Write(100, {});
  Write(600, {.parent = 1});
  Mark(600, "run-7");
  Write(601, {.parent = 600});
  Write(700, {.parent = 1});
  Mark(700, "run-70");
  ProcessProbe probe(files_.machine(100, "run-7"));
  probe.Sample(Seconds(1), sink_);
  probe.Sample(Seconds(2), sink_);
  EXPECT_THAT(Pids(probe), UnorderedElementsAre(100, 600, 601))
      << "the mark's own child too, not another run's";
}

TEST_F(ProcessProbeTest, SumsByRoleAndRank) {
  Write(100, {.threads = 2, .pages = 10});
  Write(101, {.parent = 100, .pages = 20});
  Write(102, {.parent = 100, .pages = 30});
  Write(103, {.parent = 100, .pages = 40});
  ProcessProbe probe(files_.machine(100));
  probe.SetRole(101, "loader", 0);  // before it was seen
  probe.Sample(Seconds(1), sink_);
  probe.SetRole(100, "trainer", -1);
  probe.SetRole(102, "loader", 1);
  Write(100, {.user_ticks = static_cast<int64_t>(kTicks), .threads = 2, .pages = 10});
  Write(101, {.parent = 100, .user_ticks = static_cast<int64_t>(kTicks / 2), .pages = 20});
  Write(102, {.parent = 100, .user_ticks = static_cast<int64_t>(kTicks), .pages = 30});
  sink_.Clear();
  probe.Sample(Seconds(3), sink_);
  EXPECT_DOUBLE_EQ(*sink_.Last("process_cpu{role=trainer}"), 0.5);
  EXPECT_DOUBLE_EQ(*sink_.Last("process_cpu{role=loader}"), 0.75);
  EXPECT_DOUBLE_EQ(*sink_.Last("process_cpu{rank=1,role=loader}"), 0.5);
  EXPECT_DOUBLE_EQ(*sink_.Last("process_cpu{role=other}"), 0);
  EXPECT_EQ(sink_.Last("process_memory{role=loader}"), 50 * kPage);
  EXPECT_EQ(sink_.Last("process_memory{rank=0,role=loader}"), 20 * kPage);
  EXPECT_EQ(sink_.Last("process_threads{role=trainer}"), 2);
  EXPECT_EQ(sink_.Last("process_count{role=loader}"), 2);
  EXPECT_FALSE(sink_.Last("process_count{rank=-1,role=trainer}"));
  for (const record::Process& process : probe.Processes()) {
    if (process.pid == 102) {
      EXPECT_EQ(process.role, "loader");
      EXPECT_EQ(process.rank, 1);
    }
  }
}

TEST_F(ProcessProbeTest, AProcessThatBeganSinceTheLastRoundCountsFromItsBeginning) {
  Write(100, {});
  ProcessProbe probe(files_.machine(100));
  probe.Sample(Seconds(1), sink_);
  Write(101, {.parent = 100, .user_ticks = static_cast<int64_t>(kTicks / 2)});
  probe.Sample(Seconds(2), sink_);
  EXPECT_DOUBLE_EQ(*sink_.Last("process_cpu{role=other}"), 0.5);
}

TEST_F(ProcessProbeTest, DetailsBecomeRates) {
  Write(100, {});
  WriteDetails(100, 100, 1000, 64);
  ProcessProbe probe(files_.machine(100));
  probe.Sample(Seconds(1), sink_);
  EXPECT_EQ(sink_.Last("process_pss{role=other}"), 64 * 1024);
  EXPECT_FALSE(sink_.Last("process_io_read{role=other}"));
  WriteDetails(100, 200, 3000, 64);
  probe.Sample(Seconds(3), sink_);
  EXPECT_DOUBLE_EQ(*sink_.Last("process_context_switches{role=other}"), 100);
  EXPECT_DOUBLE_EQ(*sink_.Last("process_io_read{role=other}"), 2000);
  EXPECT_DOUBLE_EQ(*sink_.Last("process_io_write{role=other}"), 1000);
  EXPECT_DOUBLE_EQ(*sink_.Last("process_io_read_calls{role=other}"), 4000);
}

TEST_F(ProcessProbeTest, TheFewestCoresThatAnyMayUseCountForTheirRole) {
  Write(100, {});
  Write(101, {.parent = 100});
  files_.Write("/proc/100/status", "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n");
  files_.Write("/proc/101/status", "Name:\tx\nCpus_allowed:\t05\nCpus_allowed_list:\t0,2\n");
  ProcessProbe probe(files_.machine(100));
  probe.Sample(Seconds(1), sink_);
  EXPECT_EQ(sink_.Last("process_cpus_allowed{role=other}"), 2);
}

TEST_F(ProcessProbeTest, ManyProcessesHaveTheirDetailsReadInTurn) {
  Write(100, {});
  for (int64_t pid = 101; pid < 160; ++pid) Write(pid, {.parent = 100});
  for (int64_t pid = 100; pid < 160; ++pid) WriteDetails(pid, 0, 0, 1);
  ProcessProbe probe(files_.machine(100));
  for (int t = 1; t <= 3; ++t) probe.Sample(Seconds(t), sink_);
  for (int64_t pid = 100; pid < 160; ++pid) WriteDetails(pid, 0, 600, 1);
  for (int t = 4; t <= 6; ++t) probe.Sample(Seconds(t), sink_);
  // Each wrote 600 bytes; 24 a round: each is read every two and a half rounds on the average.
  EXPECT_GT(*sink_.Last("process_io_write{role=other}"), 60 * 600.0 / 3 * 0.5);
  EXPECT_LE(*sink_.Last("process_io_write{role=other}"), 60 * 600.0 / 2);
}

TEST_F(ProcessProbeTest, WaitsForACoreAreThoseOfAllThreadsByRoleAndRank) {
  Write(100, {.user_ticks = 5});
  Write(101, {.parent = 100, .user_ticks = 5});
  for (const int64_t pid : {100, 101}) {
    WriteDelay(pid, pid, 3);
    WriteDelay(pid, pid + 1000, 4);
  }
  ProcessProbe probe(files_.machine(100));
  probe.SetRole(101, "trainer", 1);
  probe.Sample(Seconds(1), sink_);
  EXPECT_FALSE(sink_.Last("process_run_delay{role=trainer}"));
  Write(100, {.user_ticks = 9});
  Write(101, {.parent = 100, .user_ticks = 9});
  WriteDelay(100, 1100, 5);
  WriteDelay(101, 101, 3.5);
  WriteDelay(101, 1101, 6);
  probe.Sample(Seconds(3), sink_);
  EXPECT_DOUBLE_EQ(sink_.Last("process_run_delay{role=other}").value_or(-1), 0.5);
  EXPECT_DOUBLE_EQ(sink_.Last("process_run_delay{rank=1,role=trainer}").value_or(-1), 1.25);
}

TEST_F(ProcessProbeTest, AProcessThatTakesNoCpuTimeWaitsForNone) {
  Write(100, {.user_ticks = 5});
  WriteDelay(100, 100, 3);
  ProcessProbe probe(files_.machine(100));
  probe.Sample(Seconds(1), sink_);
  Write(100, {.user_ticks = 9});
  WriteDelay(100, 100, 4);
  probe.Sample(Seconds(2), sink_);
  EXPECT_DOUBLE_EQ(sink_.Last("process_run_delay{role=other}").value_or(-1), 1);
  WriteDelay(100, 100, 400);
  probe.Sample(Seconds(3), sink_);
  EXPECT_DOUBLE_EQ(sink_.Last("process_run_delay{role=other}").value_or(-1), 0) << "its threads are not read";
}

TEST_F(ProcessProbeTest, TheMostThatAProcessHeldIsKnownBetweenTheReadings) {
  Write(100, {.pages = 256});
  files_.Write("/proc/100/status", "VmHWM:\t    3000 kB\nVmRSS:\t    1000 kB\n");
  ProcessProbe probe(files_.machine(100));
  probe.Sample(Seconds(1), sink_);
  EXPECT_EQ(sink_.Last("process_memory_peak{role=other}"), 3000 * 1024);
}

TEST_F(ProcessProbeTest, WhatAProcessHoldsNowIsPartOfTheMostThatItHeld) {
  Write(100, {.pages = 4096});
  files_.Write("/proc/100/status", "VmHWM:\t    3000 kB\nVmRSS:\t    1000 kB\n");  // read some rounds ago
  ProcessProbe probe(files_.machine(100));
  probe.Sample(Seconds(1), sink_);
  EXPECT_EQ(sink_.Last("process_memory_peak{role=other}"), sink_.Last("process_memory{role=other}"));
}

TEST_F(ProcessProbeTest, PrivateMemoryOfYoungWorkersIsReadMoreOften) {
  Write(100, {});
  Write(101, {.parent = 100});
  ProcessProbe probe(files_.machine(100));
  probe.SetRole(100, "trainer", -1);
  probe.SetRole(101, "loader", -1);
  for (int second = 1; second <= 7; ++second) {
    WriteDetails(100, 1, 1, 1000 + second);
    WriteDetails(101, 1, 1, 1000 + second);
    probe.Sample(Seconds(second), sink_);
  }
  EXPECT_EQ(sink_.Last("process_pss{role=loader}"), 1007 * 1024);
  EXPECT_EQ(sink_.Last("process_pss{role=trainer}"), 1001 * 1024) << "that waits its ten seconds";
  EXPECT_EQ(probe.OneWithRole("loader"), 101);
  EXPECT_EQ(probe.OneWithRole("other"), 0);
}

TEST_F(ProcessProbeTest, UnreadableValuesAreAbsent) {
  Write(100, {});
  files_.MakeDirectory("/proc/100/io");  // reading it fails, as another user's file would
  files_.MakeDirectory("/proc/100/smaps_rollup");
  ProcessProbe probe(files_.machine(100));
  probe.Sample(Seconds(1), sink_);
  probe.Sample(Seconds(2), sink_);
  EXPECT_FALSE(sink_.Last("process_pss{role=other}"));
  EXPECT_FALSE(sink_.Last("process_memory_peak{role=other}"));
  EXPECT_FALSE(sink_.Last("process_io_read{role=other}"));
  EXPECT_FALSE(sink_.Last("process_context_switches{role=other}"));
  EXPECT_FALSE(sink_.Last("process_run_delay{role=other}"));
  EXPECT_TRUE(sink_.Last("process_memory{role=other}"));
}

TEST_F(ProcessProbeTest, EndedProcessesAndZombiesStopCounting) {
  Write(100, {});
  Write(101, {.parent = 100});
  ProcessProbe probe(files_.machine(100));
  probe.Sample(Seconds(1), sink_);
  Write(101, {.parent = 100, .state = 'Z'});
  probe.Sample(Seconds(2), sink_);
  EXPECT_EQ(sink_.Last("process_count{role=other}"), 1);
  probe.Sample(Seconds(3), sink_);
  ASSERT_EQ(probe.Processes().size(), 2) << "the zombie does not come back";
  for (const record::Process& process : probe.Processes()) {
    EXPECT_EQ(process.begin_ns, Seconds(1));
    EXPECT_EQ(process.end_ns, process.pid == 101 ? Seconds(2) : 0);
  }
}

TEST_F(ProcessProbeTest, CommandLinesAreShortAndFollowExec) {
  Write(100, {.name = "sh"});
  files_.Write("/proc/100/cmdline", std::string("sh\0-c\0python train.py", 21));
  ProcessProbe probe(files_.machine(100));
  probe.Sample(Seconds(1), sink_);
  EXPECT_EQ(probe.Processes()[0].command, "sh -c python train.py");
  Write(100, {.name = "python (x) y"});
  std::string longer = "python\nx";
  for (int i = 0; i < 200; ++i) longer += "\xc3\xa4";
  files_.Write("/proc/100/cmdline", longer);
  probe.Sample(Seconds(2), sink_);
  const std::string command = probe.Processes()[0].command;
  EXPECT_THAT(command, ::testing::StartsWith("python x\xc3\xa4"));
  EXPECT_EQ(command.size(), 200) << "at most 200 bytes, and no character cut in two";
  EXPECT_EQ(command.substr(198), "\xc3\xa4");
}

TEST_F(ProcessProbeTest, SecretsOfCommandLinesAreMasked) {
  Write(100, {.name = "python"});
  constexpr char kWords[] = "python\0train.py\0--api-key\0X\0--hf-token=Y\0--lr\0001";
  files_.Write("/proc/100/cmdline", std::string(kWords, sizeof kWords));
  ProcessProbe probe(files_.machine(100));
  probe.Sample(Seconds(1), sink_);
  EXPECT_EQ(probe.Processes()[0].command, "python train.py --api-key *** --hf-token=*** --lr 1");
}

TEST_F(ProcessProbeTest, CommandLinesAreLeftOutWhereTheyAreNotWanted) {
  Write(100, {.name = "python"});
  files_.Write("/proc/100/cmdline", std::string("python\0login\0X\0", 15));
  Machine machine = files_.machine(100);
  machine.keep_command_lines = false;
  ProcessProbe probe(machine);
  probe.Sample(Seconds(1), sink_);
  EXPECT_EQ(probe.Processes()[0].command, "python");
  Write(100, {.name = "dd"});
  probe.Sample(Seconds(2), sink_);
  EXPECT_EQ(probe.Processes()[0].command, "dd");
}

TEST_F(ProcessProbeTest, ACommandLineThatWasEmptyDuringAnExecIsReadAgain) {
  Write(100, {.name = "dd"});
  ProcessProbe probe(files_.machine(100));
  probe.Sample(Seconds(1), sink_);
  EXPECT_EQ(probe.Processes()[0].command, "dd");
  files_.Write("/proc/100/cmdline", std::string("dd\0if=x", 7));
  probe.Sample(Seconds(2), sink_);
  EXPECT_EQ(probe.Processes()[0].command, "dd if=x");
}

TEST_F(ProcessProbeTest, AReusedPidIsAnotherProcess) {
  Write(100, {});
  Write(101, {.parent = 100, .start = 200});
  ProcessProbe probe(files_.machine(100));
  probe.Sample(Seconds(1), sink_);
  Write(101, {.parent = 1, .start = 300});  // the open file now tells of somebody else
  probe.Sample(Seconds(2), sink_);
  EXPECT_EQ(sink_.Last("process_count{role=other}"), 1);
}

TEST_F(ProcessProbeTest, GarbageIsNotAProcess) {
  files_.Write("/proc/100/stat", "100 (python");
  files_.Write("/proc/101/stat", ") 1 (");
  files_.Write("/proc/102/stat", "102 (x) S 100 1 1\n");
  files_.Write("/proc/103x/stat", "103 (x) S 100\n");
  ProcessProbe probe(files_.machine(100));
  probe.Sample(Seconds(1), sink_);
  EXPECT_THAT(probe.Processes(), IsEmpty());
}

// The real /proc: a child that is ours by its parent, and its end.
TEST(ProcessProbeRealTest, SeesARealChildAndItsEnd) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  FakeSink sink;
  ProcessProbe probe({"", child, ""});
  probe.Sample(Seconds(1), sink);
  EXPECT_EQ(sink.Last("process_count{role=other}"), 1);
  EXPECT_GT(*sink.Last("process_memory{role=other}"), 0);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  probe.Sample(Seconds(2), sink);
  EXPECT_EQ(probe.Processes().at(0).end_ns, Seconds(2));
}

}  // namespace
}  // namespace fullbore::probe
