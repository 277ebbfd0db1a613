#include "measure/probe/cgroup/cgroup_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "measure/probe/proc/facts_probe.h"
#include "measure/probe/proc/memory_left.h"
#include "measure/probe/testing/fake_machine.h"

namespace fullbore::probe {
namespace {

constexpr const char* kV2Mount = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
// A hybrid machine: memory and cpu in their own hierarchies, the unified one without controllers.
constexpr const char* kHybridMounts =
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
constexpr const char* kHybridCgroup = "4:memory:/api/job\n3:cpuset:/\n1:cpu,cpuacct:/\n0::/\n";

class CgroupProbeTest : public ::testing::Test {
 protected:
  void MakeV2() {
    files_.Write("/proc/self/mountinfo", kV2Mount);
    files_.Write("/proc/self/cgroup", "0::/pod/job\n");
    files_.Write("/sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
    files_.Write("/sys/fs/cgroup/pod/memory.max", "4096000\n");
    files_.Write("/sys/fs/cgroup/pod/job/cpu.max", "max 100000\n");
    files_.Write("/sys/fs/cgroup/pod/job/memory.max", "max\n");
    files_.Write("/sys/fs/cgroup/pod/job/cpuset.cpus.effective", "0-3,8\n");
    files_.Write("/sys/fs/cgroup/pod/job/memory.current", "1000000\n");
    files_.Write("/sys/fs/cgroup/pod/job/memory.stat", "anon 1\nfile 300000\nshmem 100000\n");
    files_.Write("/sys/fs/cgroup/pod/job/memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 5\n");
    files_.Write("/sys/fs/cgroup/pod/job/cpu.stat", "usage_usec 9\nnr_periods 100\nnr_throttled 10\n");
    files_.Write("/sys/fs/cgroup/pod/job/io.pressure", "some avg10=0 total=0\nfull avg10=0 total=0\n");
  }
  void MakeHybrid() {
    files_.Write("/proc/self/mountinfo", kHybridMounts);
    files_.Write("/proc/self/cgroup", kHybridCgroup);
    files_.MakeDirectory("/sys/fs/cgroup/unified");
    files_.Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    files_.Write("/sys/fs/cgroup/memory/api/memory.limit_in_bytes", "8192000\n");
    files_.Write("/sys/fs/cgroup/memory/api/job/memory.limit_in_bytes", "9223372036854771712\n");
    files_.Write("/sys/fs/cgroup/memory/api/job/memory.usage_in_bytes", "5000000\n");
    files_.Write("/sys/fs/cgroup/memory/api/job/memory.stat",
                 "cache 1\ntotal_cache 600000\ntotal_shmem 100000\n");
    files_.Write("/sys/fs/cgroup/memory/api/job/memory.oom_control",
                 "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
    files_.Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "250000\n");
    files_.Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    files_.Write("/sys/fs/cgroup/cpu/cpu.stat", "nr_periods 10\nnr_throttled 1\nthrottled_time 5\n");
    files_.Write("/sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-1\n");
  }

  FakeMachine files_;
  FakeSink sink_;
};

TEST_F(CgroupProbeTest, ReadsTheUnifiedHierarchyWithTheTightestLimitOfAllAncestors) {
  MakeV2();
  CgroupProbe probe(files_.machine());
  probe.Sample(Seconds(1), sink_);
  EXPECT_EQ(sink_.Last("cgroup_cpu_limit"), 1.5);
  EXPECT_EQ(sink_.Last("cgroup_memory_limit"), 4096000);
  EXPECT_EQ(sink_.Last("cgroup_memory_used"), 1000000);
  EXPECT_EQ(sink_.Last("cgroup_memory_cache"), 200000) << "shared memory cannot be dropped";
  EXPECT_EQ(sink_.Last("cgroup_oom_kills"), 0);
  EXPECT_FALSE(sink_.Last("cgroup_cpu_throttled"));
  files_.Write("/sys/fs/cgroup/pod/job/cpu.stat", "usage_usec 9\nnr_periods 120\nnr_throttled 15\n");
  files_.Write("/sys/fs/cgroup/pod/job/memory.events", "oom 2\noom_kill 6\n");
  files_.Write("/sys/fs/cgroup/pod/job/io.pressure",
               "some avg10=0 total=500000\nfull avg10=0 total=250000\n");
  probe.Sample(Seconds(2), sink_);
  EXPECT_EQ(sink_.Last("cgroup_cpu_throttled"), 0.25);
  EXPECT_EQ(sink_.Last("cgroup_oom_kills"), 1);
  EXPECT_DOUBLE_EQ(*sink_.Last("cgroup_psi_io_some"), 0.5);
  EXPECT_DOUBLE_EQ(*sink_.Last("cgroup_psi_io_full"), 0.25);
}

TEST_F(CgroupProbeTest, ReadsEachControllerOfAHybridMachineWhereItIs) {
  MakeHybrid();
  CgroupProbe probe(files_.machine());
  probe.Sample(Seconds(1), sink_);
  EXPECT_EQ(sink_.Last("cgroup_cpu_limit"), 2.5);
  EXPECT_EQ(sink_.Last("cgroup_memory_limit"), 8192000) << "the parent's limit applies";
  EXPECT_EQ(sink_.Last("cgroup_memory_used"), 5000000);
  EXPECT_EQ(sink_.Last("cgroup_memory_cache"), 500000);
  EXPECT_EQ(sink_.Last("cgroup_oom_kills"), 0);
  files_.Write("/sys/fs/cgroup/cpu/cpu.stat", "nr_periods 20\nnr_throttled 6\nthrottled_time 5\n");
  probe.Sample(Seconds(2), sink_);
  EXPECT_EQ(sink_.Last("cgroup_cpu_throttled"), 0.5);
}

TEST_F(CgroupProbeTest, WithoutLimitsThereAreNoReadings) {
  files_.Write("/proc/self/mountinfo", kV2Mount);
  files_.Write("/proc/self/cgroup", "0::/\n");
  files_.Write("/sys/fs/cgroup/cpu.stat", "usage_usec 9\nnr_periods 0\nnr_throttled 0\n");
  CgroupProbe probe(files_.machine());
  probe.Sample(Seconds(1), sink_);
  probe.Sample(Seconds(2), sink_);
  EXPECT_EQ(sink_.series_count(), 0);
}

TEST_F(CgroupProbeTest, AContainerThatShowsTheHostsPathIsReadAtItsMount) {
  MakeV2();
  files_.Write("/proc/self/mountinfo",
               "30 1 0:26 /host/docker/abc /sys/fs/cgroup/pod/job rw - cgroup2 cgroup2 rw\n");
  files_.Write("/proc/self/cgroup", "0::/host/docker/abc\n");
  CgroupProbe probe(files_.machine());
  probe.Sample(Seconds(1), sink_);
  EXPECT_EQ(sink_.Last("cgroup_memory_used"), 1000000);
}

TEST_F(CgroupProbeTest, WhatIsLeftIsWhatTheFullestOfAllGroupsAboveLeaves) {
  MakeHybrid();
  files_.Write("/proc/meminfo", "MemTotal: 90000 kB\nMemAvailable: 8000 kB\n");
  files_.Write("/sys/fs/cgroup/memory/api/memory.usage_in_bytes", "7000000\n");
  files_.Write("/sys/fs/cgroup/memory/api/memory.stat", "total_cache 600000\ntotal_shmem 100000\n");
  EXPECT_EQ(MemoryLeft(files_.machine().root), 8192000 - 7000000 + 500000) << "the parent's";
  files_.Write("/proc/meminfo", "MemTotal: 90000 kB\nMemAvailable: 50 kB\n");
  EXPECT_EQ(MemoryLeft(files_.machine().root), 50 * 1024) << "the machine's";
}

TEST_F(CgroupProbeTest, WhatIsLeftInAUnifiedHierarchy) {
  MakeV2();
  EXPECT_FALSE(MemoryLeft(files_.machine().root)) << "nobody says it";
  files_.Write("/proc/meminfo", "MemAvailable: 8000 kB\n");
  EXPECT_EQ(MemoryLeft(files_.machine().root), 8000 * 1024) << "what the limited group uses is not known";
  files_.Write("/sys/fs/cgroup/pod/memory.current", "4096000\n");
  files_.Write("/sys/fs/cgroup/pod/memory.stat", "file 300000\nshmem 100000\n");
  EXPECT_EQ(MemoryLeft(files_.machine().root), 200000);
}

// "77 (x) S 1 ...": state and start time.
std::string StatOf77(char state, int64_t start) {
  return std::string("77 (x) ") + state + " 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 " + std::to_string(start) +
         " 1 1\n";
}

TEST_F(CgroupProbeTest, FollowsTheCommandIntoAnotherGroup) {
  MakeV2();
  files_.Write("/proc/77/cgroup", "0::/pod\n");
  files_.Write("/proc/77/stat", StatOf77('S', 5));
  files_.Write("/sys/fs/cgroup/pod/memory.current", "7\n");
  CgroupProbe probe(files_.machine(77));
  probe.Sample(Seconds(1), sink_);
  EXPECT_EQ(sink_.Last("cgroup_memory_used"), 7);
  files_.Write("/proc/77/cgroup", "0::/pod/job\n");
  probe.Sample(Seconds(2), sink_);
  EXPECT_EQ(sink_.Last("cgroup_memory_used"), 1000000);
}

TEST_F(CgroupProbeTest, KeepsTheLastGroupOfACommandThatHasEnded) {
  MakeHybrid();
  files_.Write("/proc/77/cgroup", kHybridCgroup);
  files_.Write("/proc/77/stat", StatOf77('S', 5));
  CgroupProbe probe(files_.machine(77));
  probe.Sample(Seconds(1), sink_);
  files_.Write("/sys/fs/cgroup/memory/api/job/memory.oom_control", "oom_kill 4\n");
  for (const std::string& stat :
       {StatOf77('Z', 5), StatOf77('S', 900)}) {  // a zombie; another process with its pid
    files_.Write("/proc/77/cgroup", "4:memory:/\n3:cpuset:/\n1:cpu,cpuacct:/\n0::/\n");
    files_.Write("/proc/77/stat", stat);
    sink_.Clear();
    probe.Sample(Seconds(2), sink_);
    EXPECT_EQ(sink_.Last("cgroup_oom_kills"), 1) << stat;
    EXPECT_EQ(sink_.Last("cgroup_memory_used"), 5000000) << stat;
  }
}

TEST_F(CgroupProbeTest, GarbageGivesNoReadings) {
  MakeV2();
  for (const char* file : {"cpu.max", "memory.max", "memory.current", "memory.stat", "memory.events",
                           "cpu.stat", "io.pressure", "cpuset.cpus.effective"}) {
    files_.Write(std::string("/sys/fs/cgroup/pod/job/") + file, "\xff garbage -1 some total=x\n");
    files_.Write(std::string("/sys/fs/cgroup/pod/") + file, "");
  }
  CgroupProbe probe(files_.machine());
  probe.Sample(Seconds(1), sink_);
  probe.Sample(Seconds(2), sink_);
  EXPECT_EQ(sink_.series_count(), 0);
}

TEST(CpuListTest, CountsRangesAndRejectsInvalidLists) {
  EXPECT_EQ(CountCpuList("0-3,8"), 5);
  EXPECT_EQ(CountCpuList("0"), 1);
  EXPECT_FALSE(CountCpuList(""));
  EXPECT_FALSE(CountCpuList("3-1"));
  EXPECT_FALSE(CountCpuList("a-b"));
}

TEST_F(CgroupProbeTest, UsableCoresAreTheTightestOfAffinityCpusetAndQuota) {
  MakeV2();
  files_.Write("/proc/self/status", "Name:\tfullbore\nCpus_allowed_list:\t0-15\n");
  files_.Write("/proc/cpuinfo",
               "processor : 0\nmodel name : Fast CPU\nphysical id : 0\ncore id : 0\n\n"
               "processor : 1\nmodel name : Fast CPU\nphysical id : 0\ncore id : 0\n\n");
  files_.Write("/proc/meminfo", "MemTotal: 1000 kB\n");
  files_.Write("/proc/sys/kernel/hostname", "node7\n");
  files_.Write("/proc/sys/kernel/osrelease", "6.1.0\n");
  FactsProbe probe(files_.machine());
  probe.Sample(Seconds(1), sink_);
  EXPECT_EQ(sink_.facts["cores"], "1.5") << "quota 1.5, cpuset 5, affinity 16";
  EXPECT_EQ(sink_.facts["cores_logical"], "2");
  EXPECT_EQ(sink_.facts["cores_physical"], "1");
  EXPECT_EQ(sink_.facts["cpu_model"], "Fast CPU");
  EXPECT_EQ(sink_.facts["memory_bytes"], "1024000");
  EXPECT_EQ(sink_.facts["cgroup_memory_limit"], "4096000");
  EXPECT_EQ(sink_.facts["hostname"], "node7");
  EXPECT_EQ(sink_.facts["kernel"], "6.1.0");
}

TEST_F(CgroupProbeTest, TheWidestInstructionsForBfloat16AreAFact) {
  const auto fact_of = [&](const char* flags) {
    files_.Write("/proc/cpuinfo", std::string("processor : 0\nflags : fpu ") + flags + " sse\n\n");
    sink_.facts.clear();
    FactsProbe(files_.machine()).Sample(Seconds(1), sink_);
    return sink_.facts.contains("cpu_bf16") ? sink_.facts["cpu_bf16"] : "";
  };
  EXPECT_EQ(fact_of("avx512f avx512_bf16 amx_bf16"), "AMX");
  EXPECT_EQ(fact_of("avx512f avx512_bf16"), "AVX512");
  EXPECT_EQ(fact_of("avx512f"), "");
}

TEST_F(CgroupProbeTest, FactsThatCannotBeReadAreAbsent) {
  FactsProbe(files_.machine()).Sample(Seconds(1), sink_);
  EXPECT_TRUE(sink_.facts.empty());
}

}  // namespace
}  // namespace fullbore::probe
