#include "fleet/use.h"

#include <gmock/gmock.h>

#include "explain/diagnose/testing/made_run.h"

namespace fullbore::fleet {
namespace {

using diagnose::testing::AddSeries;
using diagnose::testing::MadeRank;
using diagnose::testing::MadeRun;
using diagnose::testing::MadeStep;
using record::Metric;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

// Under Slurm: 16 cores, 64 GB and two GPUs for a day, from the Unix second 1,700,000,000 on.
record::Recording AJob() {
  record::Recording run = MadeRun({MadeRank(0, 20, [](int64_t) { return MadeStep{}; })});
  run.machine["job_id"] = "4711";
  run.machine["job_cores"] = "16";
  run.machine["job_memory_mb"] = "65536";
  run.machine["job_gpus"] = "2";
  run.machine["job_start_unix_s"] = "1700000000";
  run.machine["job_end_unix_s"] = "1700086400";
  run.wall_offset_ns = 1'700'000'000'000'000'000;
  return run;
}

TEST(UseTest, CoresAreThoseOfAllRolesAndRanksArePartOfThem) {
  record::Recording run = AJob();
  AddSeries(run, Metric::kProcessCpu, 1.25, {{"role", "trainer"}});
  AddSeries(run, Metric::kProcessCpu, 2.5, {{"role", "loader"}});
  AddSeries(run, Metric::kProcessCpu, 1.25, {{"role", "trainer"}, {"rank", "0"}});
  const Use use = UseOf(run);
  EXPECT_EQ(use.cores_given, 16);
  EXPECT_DOUBLE_EQ(*use.cores_mean, 3.75);
  EXPECT_DOUBLE_EQ(*use.cores_p95, 3.75);
}

TEST(UseTest, WhatTheSchedulerDidNotSayIsNotKnown) {
  record::Recording run = MadeRun({});
  AddSeries(run, Metric::kProcessCpu, 1.25, {{"role", "trainer"}});
  AddSeries(run, Metric::kGpuUtilization, 0.5, {{"gpu", "0"}});
  EXPECT_EQ(UseOf(run), Use{});
}

TEST(UseTest, ARunWithinIsSeenWhereItsProcessesAreAndNotWhereOnlyItsRecorderIs) {
  record::Recording run = AJob();
  std::vector<record::Process>& processes = run.stages[0].processes;
  const auto see = [&](int64_t pid, int64_t parent_pid, std::string_view role) {
    processes.push_back({pid, parent_pid, std::string(role), -1, "", 0, 0});
  };
  see(2, 1, record::kRecorderRole);
  see(4, 1, "trainer");
  EXPECT_FALSE(UseOf(run).sees_runs_within);
  see(3, 2, "trainer");
  EXPECT_TRUE(UseOf(run).sees_runs_within);
}

TEST(UseTest, MemoryIsTheJobsOwnGroupsWhereItHasOne) {
  record::Recording run = AJob();
  AddSeries(run, Metric::kProcessMemoryPeak, 5e9, {{"role", "trainer"}});
  AddSeries(run, Metric::kProcessMemoryPeak, 3e9, {{"role", "loader"}});
  EXPECT_EQ(UseOf(run).memory_peak_bytes, 8'000'000'000);
  AddSeries(run, Metric::kCgroupMemoryLimit, 65536.0 * (1 << 20));
  AddSeries(run, Metric::kCgroupMemoryUsed, 30e9);
  AddSeries(run, Metric::kCgroupMemoryCache, 24e9);
  EXPECT_EQ(UseOf(run).memory_peak_bytes, 6'000'000'000);
  run.machine["job_memory_mb"] = "32768";  // the limit is another group's
  EXPECT_EQ(UseOf(run).memory_peak_bytes, 8'000'000'000);
}

TEST(UseTest, MemoryByTheCoreIsThatOfAllOfThem) {
  record::Recording run = AJob();
  run.machine.erase("job_memory_mb");
  run.machine["job_memory_per_core_mb"] = "1024";
  EXPECT_EQ(UseOf(run).memory_given_bytes, int64_t{16} << 30);
}

TEST(UseTest, TimeIsTheJobsUntilTheRunEnded) {
  const Use use = UseOf(AJob());  // it ends an hour after the job's begin
  EXPECT_EQ(use.time_given_ns, 86400 * 1'000'000'000LL);
  EXPECT_EQ(use.time_used_ns, 3600 * 1'000'000'000LL);
}

TEST(UseTest, AGpuIsUsedWhereTheCommandIsOnItAndAKernelRan) {
  record::Recording run = AJob();
  AddSeries(run, Metric::kGpuUtilization, 0.8, {{"gpu", "0"}});
  AddSeries(run, Metric::kGpuUtilization, 0, {{"gpu", "1"}});
  EXPECT_EQ(UseOf(run).gpus_used, 1);
  AddSeries(run, Metric::kGpuProcessMemory, 1e9, {{"gpu", "1"}, {"owner", "command"}});
  EXPECT_EQ(UseOf(run).gpus_used, 0) << "the kernels of the other one are somebody else's";
  EXPECT_TRUE(UseOf(run).NeverTouchedItsGpu());
}

TEST(UseTest, WhichOfMoreGpusAreTheJobsIsOnlyKnownByItsProcesses) {
  record::Recording run = AJob();
  for (const char* gpu : {"0", "1", "2"}) AddSeries(run, Metric::kGpuUtilization, 0.8, {{"gpu", gpu}});
  EXPECT_FALSE(UseOf(run).gpus_used);
  AddSeries(run, Metric::kGpuProcessMemory, 1e9, {{"gpu", "1"}, {"owner", "command"}});
  EXPECT_EQ(UseOf(run).gpus_used, 1);
}

TEST(UseTest, WithoutReadingsOfItsGpusNothingIsSaidOfThem) {
  EXPECT_EQ(UseOf(AJob()).gpus_given, 2);
  EXPECT_FALSE(UseOf(AJob()).NeverTouchedItsGpu());
}

TEST(UseTest, OverAskedIsWhatHalfWouldHaveBeenEnoughFor) {
  Use use;
  use.cores_given = 16;
  use.cores_mean = 2;
  use.cores_p95 = 7.5;
  use.memory_given_bytes = 64'000'000'000;
  use.memory_peak_bytes = 40'000'000'000;
  use.time_given_ns = 86'400'000'000'000;
  use.time_used_ns = 3'600'000'000'000;
  const auto what = [](const std::string& name) { return Field(&Amount::what, name); };
  EXPECT_THAT(HardlyUsedIn(use, true), ElementsAre(what("cores"), what("time")));
  EXPECT_THAT(HardlyUsedIn(use, false), ElementsAre(what("cores"))) << "it might have needed all of its time";
  use.cores_given = 2;
  use.cores_p95 = 0.9;
  EXPECT_THAT(HardlyUsedIn(use, true), ElementsAre(what("cores"), what("time")));
  use.cores_given = 1;
  use.cores_p95 = 0.1;
  EXPECT_THAT(HardlyUsedIn(use, true), ElementsAre(what("time"))) << "nobody can ask for less than one core";
  EXPECT_THAT(HardlyUsedIn(Use{}, true), IsEmpty());
}

}  // namespace
}  // namespace fullbore::fleet
