#include "explain/diagnose/memory_budget.h"

#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using testing::ARun;
using testing::ATraining;

constexpr char kMemory[] = R"({"weights": {"bfloat16": 1e9}, "gradients": {"bfloat16": 1e9},
    "states": {"exp_avg": {"float32": 2e9}, "exp_avg_sq": {"float32": 2e9}}, "total": 80e9, "outside": 3e9,
    "reserved": 30e9, "peaks": [[4, 1024, 4096, 25e9, 3]]})";

ARun ARunOnADevice(const char* memory = kMemory) {
  ARun run = ATraining();
  run.rank().facts["memory"] = memory;
  return run;
}

std::map<std::string, double> GigabytesIn(const Diagnosis& diagnosis) {
  std::map<std::string, double> parts;
  for (const MemoryPart& part : diagnosis.memory->parts) parts[part.name] = part.bytes / 1e9;
  return parts;
}

using Parts = std::map<std::string, double>;

TEST(MemoryBudgetTest, AddsUpToTheDevice) {
  const Diagnosis diagnosis = Diagnose(ARunOnADevice());
  ASSERT_TRUE(diagnosis.memory);
  EXPECT_EQ(GigabytesIn(diagnosis), (Parts{{"weights", 1},
                                           {"gradients", 1},
                                           {"states", 4},
                                           {"activations", 19},
                                           {"fragments", 5},
                                           {"outside", 3},
                                           {"free", 47}}));
  EXPECT_EQ(diagnosis.memory->parts[2].of, (Parts{{"exp_avg", 2e9}, {"exp_avg_sq", 2e9}}));
}

TEST(MemoryBudgetTest, TellsOtherProgramsByTheDriver) {
  const Diagnosis diagnosis =
      Diagnose(ARunOnADevice()
                   .Reading(Metric::kGpuProcessMemory, 31e9, {{"gpu", "2"}, {"owner", "command"}})
                   .Reading(Metric::kGpuProcessMemory, 2e9, {{"gpu", "2"}, {"owner", "other"}})
                   .Reading(Metric::kGpuProcessMemory, 0, {{"gpu", "3"}, {"owner", "command"}})
                   .Reading(Metric::kGpuProcessMemory, 9e9, {{"gpu", "3"}, {"owner", "other"}}));
  EXPECT_EQ(GigabytesIn(diagnosis).at("others"), 2);
  EXPECT_EQ(GigabytesIn(diagnosis).at("outside"), 1);
}

TEST(MemoryBudgetTest, LeavesOpenWhoseDeviceTheyAreOnWhereTheCommandHasSeveral) {
  const Diagnosis diagnosis =
      Diagnose(ARunOnADevice()
                   .Reading(Metric::kGpuProcessMemory, 31e9, {{"gpu", "2"}, {"owner", "command"}})
                   .Reading(Metric::kGpuProcessMemory, 2e9, {{"gpu", "2"}, {"owner", "other"}})
                   .Reading(Metric::kGpuProcessMemory, 9e9, {{"gpu", "3"}, {"owner", "command"}}));
  EXPECT_FALSE(GigabytesIn(diagnosis).contains("others"));
}

TEST(MemoryBudgetTest, TakesTheAllocatorsOwnPeakWhereThatIsHigher) {
  const Diagnosis diagnosis = Diagnose(ARunOnADevice()
                                           .Reading(Metric::kTorchAllocatedPeak, 40e9, {{"rank", "0"}})
                                           .Reading(Metric::kTorchReserved, 41e9, {{"rank", "0"}}));
  EXPECT_EQ(GigabytesIn(diagnosis).at("activations"), 34);
  EXPECT_EQ(GigabytesIn(diagnosis).at("fragments"), 1);
}

TEST(MemoryBudgetTest, TakesNoReadingInWholeMebibytesForAHigherPeak) {
  const double rounded = 25e9 + 0x1p19;
  const Diagnosis diagnosis =
      Diagnose(ARunOnADevice().Reading(Metric::kTorchAllocatedPeak, rounded, {{"rank", "0"}}));
  EXPECT_EQ(GigabytesIn(diagnosis).at("activations"), 19);
}

TEST(MemoryBudgetTest, IsOfTheFullestDevice) {
  ARun small = ARunOnADevice(R"({"weights": {"float32": 1e9}, "total": 16e9, "reserved": 15e9,
      "peaks": [[4, 1024, 4096, 12e9, 3]]})");
  const Diagnosis diagnosis = Diagnose(ARunOnADevice().Beside(small));
  ASSERT_TRUE(diagnosis.memory);
  EXPECT_EQ(diagnosis.memory->rank, 1);
}

TEST(MemoryBudgetTest, IsAbsentWithoutADevice) {
  EXPECT_FALSE(Diagnose(ATraining()).memory);
  EXPECT_FALSE(Diagnose(ARunOnADevice(R"({"weights": {}, "peaks": []})")).memory);
  EXPECT_FALSE(Diagnose(ARunOnADevice(R"({"peaks": [[4, 1024, 4096, 25e9, 3]]})")).memory);
}

}  // namespace
}  // namespace fullbore::diagnose
