// CPU, memory, pressure, disks, network and shared memory, on canned files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "measure/probe/proc/cpu_probe.h"
#include "measure/probe/proc/disk_probe.h"
#include "measure/probe/proc/memory_probe.h"
#include "measure/probe/proc/net_probe.h"
#include "measure/probe/proc/pressure_probe.h"
#include "measure/probe/proc/space_probe.h"
#include "measure/probe/shm/shm_probe.h"
#include "measure/probe/testing/fake_machine.h"

namespace fullbore::probe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class HostProbesTest : public ::testing::Test {
 protected:
  FakeMachine files_;
  FakeSink sink_;
};

TEST_F(HostProbesTest, CpuTimeIsAFractionOfTheInterval) {
  files_.Write("/proc/stat", "cpu  100 10 50 800 40 0 0 0 0 0\ncpu0 100 10 50 800 40 0 0 0 0 0\nintr 5\n");
  files_.Write("/proc/loadavg", "1.25 0.5 0.3 2/300 4242\n");
  CpuProbe probe(files_.machine());
  probe.Sample(Seconds(1), sink_);
  EXPECT_FALSE(sink_.Last("cpu_utilization")) << "the first round gives levels only";
  EXPECT_EQ(sink_.Last("load1"), 1.25);
  files_.Write("/proc/stat", "cpu  130 20 70 820 50 5 5 0 9 9\ncpu0 130 20 70 820 50 5 5 0 9 9\nintr 5\n");
  probe.Sample(Seconds(2), sink_);
  // 100 ticks: user 30 + nice 10, system 20 + irq 5 + softirq 5, idle 20, iowait 10.
  EXPECT_DOUBLE_EQ(*sink_.Last("cpu_user"), 0.4);
  EXPECT_DOUBLE_EQ(*sink_.Last("cpu_system"), 0.3);
  EXPECT_DOUBLE_EQ(*sink_.Last("cpu_utilization"), 0.7);
  EXPECT_DOUBLE_EQ(*sink_.Last("cpu_iowait"), 0.1);
  EXPECT_DOUBLE_EQ(*sink_.Last("cpu_steal"), 0);
  EXPECT_DOUBLE_EQ(*sink_.Last("cpu_core_utilization{cpu=0}"), 0.7);
}

TEST_F(HostProbesTest, SingleCoresAreReadOnceASecondOnly) {
  CpuProbe probe(
      (files_.Write("/proc/stat", "cpu 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\n"), files_.machine()));
  for (int tick = 0; tick <= 10; ++tick) {
    const std::string times = std::to_string(10 * tick) + " 0 0 " + std::to_string(10 * tick) + " 0 0 0 0\n";
    files_.Write("/proc/stat", "cpu " + times + "cpu0 " + times);
    probe.Sample(Seconds(10 + 0.2 * tick), sink_);
  }
  EXPECT_EQ(sink_.Count("cpu_utilization"), 10);
  EXPECT_EQ(sink_.Count("cpu_core_utilization{cpu=0}"), 2);
}

TEST_F(HostProbesTest, ManyCoresAreSummedOnlyAndVeryManyReadSlowly) {
  const auto stat = [](int cores, int ticks) {
    const std::string times = " " + std::to_string(ticks) + " 0 0 " + std::to_string(ticks) + " 0 0 0 0\n";
    std::string text = "cpu" + times;
    for (int i = 0; i < cores; ++i) text += "cpu" + std::to_string(i) + times;
    return text;
  };
  for (const int cores : {32, 33, 65}) {
    FakeSink sink;
    files_.Write("/proc/stat", stat(cores, 0));
    CpuProbe probe(files_.machine());
    probe.Sample(Seconds(1), sink);
    files_.Write("/proc/stat", stat(cores, 10));
    probe.Sample(Seconds(2), sink);
    EXPECT_EQ(sink.Last("cpu_utilization"), 0.5);
    EXPECT_EQ(sink.Last("cpu_core_utilization{cpu=31}").has_value(), cores == 32) << cores;
    EXPECT_EQ(probe.rate() == Rate::kSlow, cores == 65) << cores;
  }
}

TEST_F(HostProbesTest, CpuCountersThatStepBackGiveSaneReadings) {
  files_.Write("/proc/stat", "cpu 100 0 0 100 50 0 0 0\n");
  CpuProbe probe(files_.machine());
  probe.Sample(Seconds(1), sink_);
  files_.Write("/proc/stat", "cpu 110 0 0 110 40 0 0 0\n");
  probe.Sample(Seconds(2), sink_);
  EXPECT_EQ(sink_.Last("cpu_utilization"), 0.5);
  EXPECT_EQ(sink_.Last("cpu_iowait"), 0);
}

TEST_F(HostProbesTest, MemoryIsInBytesAndUsedIsWhatIsNotAvailable) {
  files_.Write(
      "/proc/meminfo",
      "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\nSwapTotal: 100 kB\nSwapFree: 75 kB\n");
  files_.Write("/proc/vmstat", "pswpin 0\npswpout 0\npgmajfault 100\noom_kill 7\n");
  MemoryProbe probe(files_.machine());
  probe.Sample(Seconds(1), sink_);
  EXPECT_EQ(sink_.Last("memory_total"), 1000 * 1024);
  EXPECT_EQ(sink_.Last("memory_used"), 600 * 1024);
  EXPECT_EQ(sink_.Last("memory_available"), 400 * 1024);
  EXPECT_EQ(sink_.Last("swap_used"), 25 * 1024);
  EXPECT_EQ(sink_.Last("oom_kills"), 0) << "kills before the run are not the run's";
  EXPECT_FALSE(sink_.Last("major_faults"));
  files_.Write("/proc/vmstat", "pswpin 2\npswpout 4\npgmajfault 150\noom_kill 8\n");
  probe.Sample(Seconds(3), sink_);
  EXPECT_EQ(sink_.Last("major_faults"), 25);
  EXPECT_EQ(sink_.Last("swap_in"), sysconf(_SC_PAGESIZE));
  EXPECT_EQ(sink_.Last("swap_out"), 2 * sysconf(_SC_PAGESIZE));
  EXPECT_EQ(sink_.Last("oom_kills"), 1);
}

TEST_F(HostProbesTest, OldKernelsWithoutMemAvailableLeaveItOut) {
  files_.Write("/proc/meminfo", "MemTotal:  1000 kB\nMemFree: 10 kB\n");
  MemoryProbe(files_.machine()).Sample(Seconds(1), sink_);
  EXPECT_EQ(sink_.Last("memory_total"), 1000 * 1024);
  EXPECT_FALSE(sink_.Last("memory_used"));
  EXPECT_FALSE(sink_.Last("swap_used"));
}

TEST_F(HostProbesTest, PressureIsTheStalledFractionOfTheInterval) {
  const auto write = [&](int64_t some_us, int64_t full_us) {
    const auto line = [](int64_t us) {
      return " avg10=0.00 avg60=0.00 avg300=0.00 total=" + std::to_string(us) + "\n";
    };
    for (const char* resource : {"cpu", "io", "memory"}) {
      files_.Write(std::string("/proc/pressure/") + resource,
                   "some" + line(some_us) + "full" + line(full_us));
    }
  };
  write(5'000'000, 1'000'000);
  PressureProbe probe(files_.machine());
  probe.Sample(Seconds(1), sink_);
  write(5'500'000, 3'100'000);
  probe.Sample(Seconds(3), sink_);
  EXPECT_DOUBLE_EQ(*sink_.Last("psi_cpu_some"), 0.25);
  EXPECT_DOUBLE_EQ(*sink_.Last("psi_io_some"), 0.25);
  EXPECT_DOUBLE_EQ(*sink_.Last("psi_memory_full"), 1) << "never above the whole";
  EXPECT_EQ(sink_.series_count(), 5);
}

TEST_F(HostProbesTest, MissingPressureIsReportedOnce) {
  PressureProbe probe(files_.machine());
  probe.Sample(Seconds(1), sink_);
  probe.Sample(Seconds(2), sink_);
  EXPECT_THAT(sink_.messages, ElementsAre(HasSubstr("psi=1")));
}

TEST_F(HostProbesTest, DisksAreWholeUsedAndInTheirUnits) {
  for (const char* device : {"sda", "sdb", "loop0"})
    files_.MakeDirectory(std::string("/sys/block/") + device);
  files_.Write("/proc/diskstats",
               "   8  0 sda 10 0 1000 5 20 0 2000 5 0 100 50 0 0 0 0\n"
               "   8  1 sda1 10 0 1000 5 20 0 2000 5 0 100 50\n"
               "   8 16 sdb 0 0 0 0 0 0 0 0 0 0 0\n"
               "   7  0 loop0 9 0 9 9 9 0 9 9 0 9 9\n");
  DiskProbe probe(files_.machine());
  probe.Sample(Seconds(1), sink_);
  EXPECT_EQ(sink_.series_count(), 0);
  files_.Write("/proc/diskstats",
               "   8  0 sda 30 0 5000 5 30 0 2400 5 0 1100 4050 0 0 0 0\n"
               "   8  1 sda1 30 0 5000 5 30 0 2400 5 0 1100 4050\n"
               "   8 16 sdb 0 0 0 0 0 0 0 0 0 0 0\n"
               "   7  0 loop0 99 0 99 9 9 0 9 9 0 9 9\n");
  probe.Sample(Seconds(3), sink_);
  EXPECT_EQ(sink_.Last("disk_read{device=sda}"), 2000 * 512);
  EXPECT_EQ(sink_.Last("disk_write{device=sda}"), 200 * 512);
  EXPECT_EQ(sink_.Last("disk_read_operations{device=sda}"), 10);
  EXPECT_EQ(sink_.Last("disk_write_operations{device=sda}"), 5);
  EXPECT_EQ(sink_.Last("disk_busy{device=sda}"), 0.5);
  EXPECT_EQ(sink_.Last("disk_queue{device=sda}"), 2);
  EXPECT_EQ(sink_.series_count(), 6) << "no partition, no idle disk, no loop device";
}

TEST_F(HostProbesTest, DiskQueueTimeFollowsItsWrapAt32Bits) {
  files_.MakeDirectory("/sys/block/sda");
  files_.Write("/proc/diskstats", "8 0 sda 1 0 1 1 1 0 1 1 0 0 4294967000\n");
  DiskProbe probe(files_.machine());
  probe.Sample(Seconds(1), sink_);
  files_.Write("/proc/diskstats", "8 0 sda 1 0 1 1 1 0 1 1 0 0 704\n");
  probe.Sample(Seconds(2), sink_);
  EXPECT_EQ(sink_.Last("disk_queue{device=sda}"), 1);
}

TEST_F(HostProbesTest, NetworkLeavesOutLoopbackAndInnerInterfaces) {
  const auto write = [&](int64_t in, int64_t out, int64_t drops) {
    const auto line = [&](const char* name) {
      return std::string(name) + ": " + std::to_string(in) + " 1 0 " + std::to_string(drops) + " 0 0 0 0 " +
             std::to_string(out) + " 1 0 0 0 0 0 0\n";
    };
    files_.Write("/proc/net/dev", "Inter-|   Receive   |  Transmit\n face |bytes packets|bytes packets\n" +
                                      line("    lo") + line("  eth0") + line("veth12ab"));
  };
  write(1000, 500, 0);
  NetProbe probe(files_.machine());
  probe.Sample(Seconds(1), sink_);
  write(3000, 600, 4);
  probe.Sample(Seconds(3), sink_);
  EXPECT_EQ(sink_.Last("net_receive{interface=eth0}"), 1000);
  EXPECT_EQ(sink_.Last("net_send{interface=eth0}"), 50);
  EXPECT_EQ(sink_.Last("net_drops{interface=eth0}"), 2);
  EXPECT_EQ(sink_.series_count(), 3);
}

TEST_F(HostProbesTest, RdmaPortsCountWordsOfFourBytes) {
  const std::string counters = "/sys/class/infiniband/mlx5_0/ports/1/counters";
  files_.Write(counters + "/port_rcv_data", "1000\n");
  files_.Write(counters + "/port_xmit_data", "0\n");
  NetProbe probe(files_.machine());
  probe.Sample(Seconds(1), sink_);
  files_.Write(counters + "/port_rcv_data", "2000\n");
  files_.Write(counters + "/port_xmit_data", "500\n");
  probe.Sample(Seconds(2), sink_);
  EXPECT_EQ(sink_.Last("rdma_receive{port=mlx5_0:1}"), 4000);
  EXPECT_EQ(sink_.Last("rdma_send{port=mlx5_0:1}"), 2000);
}

TEST_F(HostProbesTest, SharedMemoryIsRead) {
  files_.MakeDirectory("/dev/shm");
  ShmProbe(files_.machine()).Sample(Seconds(1), sink_);
  ASSERT_TRUE(sink_.Last("shm_total"));
  EXPECT_GT(*sink_.Last("shm_total"), 0);
  EXPECT_LE(*sink_.Last("shm_used"), *sink_.Last("shm_total"));
}

TEST_F(HostProbesTest, SharedMemoryIsThatOfAWorkerWhereThereIsOne) {
  files_.MakeDirectory("/proc/77/root/dev/shm");
  int64_t worker = 0;
  ShmProbe probe(files_.machine(), [&] { return worker; });
  probe.Sample(Seconds(1), sink_);
  EXPECT_FALSE(sink_.Last("shm_total")) << "the machine has none";
  worker = 77;
  probe.Sample(Seconds(2), sink_);
  EXPECT_TRUE(sink_.Last("shm_total"));
}

TEST_F(HostProbesTest, SharedMemoryOfAWorkerThatEndedIsTheMachines) {
  files_.MakeDirectory("/dev/shm");
  ShmProbe(files_.machine(), [] { return 77; }).Sample(Seconds(1), sink_);
  EXPECT_TRUE(sink_.Last("shm_total"));
}

TEST_F(HostProbesTest, SharedMemoryIsNoLongerTheMachinesOnceAWorkerWasSeen) {
  files_.MakeDirectory("/dev/shm");
  files_.MakeDirectory("/proc/77/root/dev/shm");
  int64_t worker = 0;
  ShmProbe probe(files_.machine(), [&] { return worker; });
  std::vector<size_t> readings;
  for (const int64_t now : {0, 77, 0}) {
    worker = now;
    probe.Sample(Seconds(1 + static_cast<int64_t>(readings.size())), sink_);
    readings.push_back(sink_.Count("shm_total"));
  }
  EXPECT_EQ(readings, (std::vector<size_t>{1, 2, 2}));
}

// Every file of every probe, first missing, then truncated or not text at all.
TEST_F(HostProbesTest, GarbageAndMissingFilesGiveNoReadingsAndDoNotCrash) {
  constexpr const char* kFiles[] = {"/proc/stat",         "/proc/loadavg",     "/proc/meminfo",
                                    "/proc/vmstat",       "/proc/diskstats",   "/proc/net/dev",
                                    "/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory"};
  const std::string garbage[] = {"",
                                 "\n\n",
                                 "cpu\ncpu0\ncpux 1 2 3 4 5 6 7 8\n",
                                 "cpu 1 2 3",
                                 "MemTotal: many kB\nMemAvailable:\n",
                                 "pgmajfault -3\noom_kill x\npswpin",
                                 "8 x sda 1 2 3\n8 0\n8",
                                 "eth0: 1 2 3\n:\neth0\n: 1 1 1 1 1 1 1 1 1 1 1 1\n",
                                 "some avg10=0.00 total=\nfull total=-5\nsome",
                                 std::string("\0\xff\xfe\0 1 2 3", 10),
                                 std::string(70'000, '9')};
  CpuProbe cpu(files_.machine());
  MemoryProbe memory(files_.machine());
  PressureProbe pressure(files_.machine());
  DiskProbe disk(files_.machine());
  NetProbe net(files_.machine());
  ShmProbe shm(files_.machine());
  Probe* const probes[] = {&cpu, &memory, &pressure, &disk, &net, &shm};
  int64_t t_ns = Seconds(1);
  const auto sample = [&] {
    for (Probe* probe : probes) probe->Sample(t_ns += Seconds(1), sink_);
  };
  sample();
  for (const std::string& text : garbage) {
    for (const char* file : kFiles) files_.Write(file, text);
    sample();
    sample();
  }
  for (const char* file : kFiles) files_.Remove(file);
  sample();
  EXPECT_EQ(sink_.series_count(), 0);
}

TEST_F(HostProbesTest, DisksOfFilesAreListedOnceAndServersAreNotAsked) {
  const auto mounts = ParseMountinfo(
      "22 1 259:2 / / rw - ext4 /dev/nvme0n1p2 rw\n"
      "23 22 259:2 /x /mnt/bound rw - ext4 /dev/nvme0n1p2 rw\n"
      "24 22 0:20 / /scratch rw - tmpfs tmpfs rw,size=1k\n"
      "25 22 0:21 / /run/user rw - tmpfs tmpfs rw\n"
      "26 22 0:40 / /data rw - nfs4 server:/export rw\n"
      "27 22 7:1 / /snap/core ro - squashfs /dev/loop1 ro\n"
      "28 22 8:1 / /archive ro - xfs /dev/sda1 ro\n"
      "29 22 8:17 / /devices rw - xfs /dev/sdb1 rw\n");
  std::vector<std::string> places;
  for (const Mount& mount : LocalFileSystems(mounts)) places.push_back(mount.mount_point);
  EXPECT_THAT(places, testing::UnorderedElementsAre("/", "/scratch", "/devices"));
}

TEST_F(HostProbesTest, SpaceIsThatOfTheFileSystem) {
  files_.Write("/proc/self/mountinfo", "22 1 259:2 / / rw - ext4 /dev/nvme0n1p2 rw\n");
  SpaceProbe probe(files_.machine());
  probe.Sample(Seconds(1), sink_);
  ASSERT_TRUE(sink_.Last("disk_space_total{mount=/}"));
  EXPECT_GT(*sink_.Last("disk_space_total{mount=/}"), *sink_.Last("disk_space_used{mount=/}"));
  probe.Sample(Seconds(2), sink_);
  EXPECT_EQ(sink_.Count("disk_space_used{mount=/}"), 1u) << "disks do not fill within a second";
  probe.Sample(Seconds(6), sink_);
  EXPECT_EQ(sink_.Count("disk_space_used{mount=/}"), 2u);
}

}  // namespace
}  // namespace fullbore::probe
