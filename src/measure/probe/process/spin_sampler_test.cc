#include "measure/probe/process/spin_sampler.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/clock.h"

namespace fullbore::probe {
namespace {

constexpr const char* kMaps =
    "00400000-00401000 r-xp 00000000 fe:01 11 /usr/bin/python3.11\n"
    "7f0000000000-7f0000004000 r--p 00000000 fe:01 12 /usr/lib/libgomp.so.1\n"
    "7f0000004000-7f0000008000 r-xp 00004000 fe:01 12 /usr/lib/libgomp.so.1\n"
    "7f1000000000-7f1000001000 r-xp 00000000 fe:01 13 /site-packages/torch/lib/libgomp-a34b3233.so.1\n"
    "7f2000000000-7f2000001000 r-xp 00000000 fe:01 14 /opt/intel/libiomp5.so\n"
    "7f3000000000-7f3000001000 r-xp 00000000 fe:01 15 /usr/lib/libompi.so\n"
    "7f4000000000-7f4000001000 r-xp 00000000 00:00 0 \n";

TEST(OpenMpCodeTest, IsTheExecutablePartOfTheRuntimes) {
  const OpenMpCode code(kMaps);
  EXPECT_TRUE(code.Contains(0x7f0000004000));
  EXPECT_TRUE(code.Contains(0x7f0000007fff));
  EXPECT_FALSE(code.Contains(0x7f0000008000));
  EXPECT_FALSE(code.Contains(0x7f0000000000)) << "its read-only data";
  EXPECT_TRUE(code.Contains(0x7f1000000800)) << "the copy that PyTorch brings";
  EXPECT_TRUE(code.Contains(0x7f2000000800));
}

TEST(OpenMpCodeTest, IsNotOfLibrariesWithSimilarNamesOrWithoutAny) {
  const OpenMpCode code(kMaps);
  EXPECT_FALSE(code.Contains(0x7f3000000800));
  EXPECT_FALSE(code.Contains(0x7f4000000800));
  EXPECT_FALSE(code.Contains(0x400800));
}

TEST(OpenMpCodeTest, GarbageIsNoCode) {
  EXPECT_FALSE(OpenMpCode("").Contains(0));
  EXPECT_FALSE(OpenMpCode("zz-yy r-xp 0 0 0 /libgomp.so\n12 r-xp\n-\n").Contains(0x12));
}

TEST(SpinSamplerTest, SeesWhereAThreadOfARunningProcessIs) {
  std::atomic<bool> stop = false;
  std::atomic<int64_t> thread_id = 0;
  std::thread busy([&] {
    thread_id = syscall(SYS_gettid);
    while (!stop) {
    }
  });
  while (thread_id == 0) std::this_thread::yield();
  SpinSampler sampler;
  sampler.Start(getpid(), "/proc/self", {thread_id});
  SpinSamples samples;
  while (!sampler.refused() && samples.all < 5) {
    const SpinSamples more = sampler.Take(getpid());
    samples.all += more.all;
    samples.in_runtime += more.in_runtime;
    std::this_thread::yield();
  }
  stop = true;
  busy.join();
  if (sampler.refused()) GTEST_SKIP() << "the kernel allows no perf events here";
  EXPECT_EQ(samples.in_runtime, 0) << "this test has no OpenMP";
  sampler.Stop(getpid());
  EXPECT_EQ(sampler.Take(getpid()).all, 0);
}

TEST(SpinSamplerTest, AThreadThatHasEndedIsNoRefusal) {
  SpinSampler sampler;
  sampler.Start(getpid(), "/proc/self", {INT32_MAX});
  EXPECT_FALSE(sampler.Samples(getpid()));
  EXPECT_EQ(sampler.Take(getpid()).all, 0);
}

}  // namespace
}  // namespace fullbore::probe
