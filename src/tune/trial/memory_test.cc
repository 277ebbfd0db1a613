#include "tune/trial/memory.h"

#include <gmock/gmock.h>

#include "record/metrics.h"

namespace fullbore::tune {
namespace {

using record::Metric;
using testing::Optional;

constexpr double kMB = 1e6;

class MemoryTest : public ::testing::Test {
 protected:
  // One reading a second.
  void Read(Metric metric, const std::vector<double>& megabytes, const record::Labels& labels = {}) {
    record::Series series{record::KeyOf(metric, labels), {}};
    for (size_t i = 0; i < megabytes.size(); ++i)
      series.readings.push_back({static_cast<int64_t>(i) * 1'000'000'000, kMB * megabytes[i]});
    stage_.series.push_back(std::move(series));
  }

  record::Stage stage_;
};

TEST_F(MemoryTest, AllProcessesOfTheCommandCountAndRanksAreNotCountedAgain) {
  Read(Metric::kProcessMemory, {300, 320}, {{"role", "trainer"}});
  Read(Metric::kProcessMemory, {300, 320}, {{"role", "trainer"}, {"rank", "0"}});
  Read(Metric::kProcessMemory, {100, 110}, {{"role", "loader"}});
  EXPECT_THAT(MemoryUseOf(stage_).peak_bytes, Optional(430'000'000));
}

TEST_F(MemoryTest, WhatIsHeldBetweenTheReadingsCounts) {
  Read(Metric::kProcessMemory, {300, 320}, {{"role", "trainer"}});
  Read(Metric::kProcessMemoryPeak, {300, 470}, {{"role", "trainer"}});
  Read(Metric::kMemoryUsed, {500, 520});
  Read(Metric::kMemoryTotal, {1000, 1000});
  const MemoryUse use = MemoryUseOf(stage_);
  EXPECT_THAT(use.peak_bytes, Optional(470'000'000));
  EXPECT_DOUBLE_EQ(use.filled.value_or(0), 0.67);
}

TEST_F(MemoryTest, ACgroupIsFullerThanTheMachineAndItsCacheCouldBeDropped) {
  Read(Metric::kProcessMemory, {300}, {{"role", "trainer"}});
  Read(Metric::kMemoryUsed, {2000});
  Read(Metric::kMemoryTotal, {10000});
  Read(Metric::kCgroupMemoryUsed, {480});
  Read(Metric::kCgroupMemoryCache, {130});
  Read(Metric::kCgroupMemoryLimit, {500});
  EXPECT_DOUBLE_EQ(MemoryUseOf(stage_).filled.value_or(0), 0.7);
}

TEST_F(MemoryTest, OfSeveralDevicesTheFullestOneDecidesWhatFits) {
  for (const char* gpu : {"0", "1"}) {
    Read(Metric::kGpuProcessMemory, {gpu[0] == '0' ? 20000.0 : 30000.0},
         {{"gpu", gpu}, {"owner", "command"}});
    Read(Metric::kGpuMemoryUsed, {gpu[0] == '0' ? 24000.0 : 32000.0}, {{"gpu", gpu}});
    Read(Metric::kGpuMemoryTotal, {40000}, {{"gpu", gpu}});
  }
  Read(Metric::kGpuMemoryUsed, {39000}, {{"gpu", "2"}});  // somebody else's
  Read(Metric::kGpuMemoryTotal, {40000}, {{"gpu", "2"}});
  const MemoryUse use = MemoryUseOf(stage_);
  EXPECT_THAT(use.peak_bytes, Optional(50'000'000'000));
  EXPECT_DOUBLE_EQ(use.filled.value_or(0), 0.8);
}

TEST_F(MemoryTest, NothingIsKnownOfWhatEndedBeforeItWasLookedAt) {
  Read(Metric::kMemoryUsed, {500});
  Read(Metric::kMemoryTotal, {1000});
  EXPECT_FALSE(MemoryUseOf(stage_).peak_bytes);
  EXPECT_FALSE(MemoryUseOf(std::string("/no/such/run.fbr")).peak_bytes);
}

}  // namespace
}  // namespace fullbore::tune
