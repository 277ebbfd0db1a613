#include "report/figures.h"

#include <gmock/gmock.h>

namespace fullbore::report {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Texts(const std::vector<Figure>& figures) {
  std::vector<std::string> texts;
  for (const Figure& figure : figures) texts.push_back(figure.label + " " + figure.value);
  return texts;
}

diagnose::Resource Level(double value) { return {value, value, value, value, ""}; }

TEST(FiguresTest, ARateThatIsHardlyKnownHasARangeAndNoMoreOrLessThanItself) {
  diagnose::Diagnosis d;
  EXPECT_EQ(RateRangeText(d), "");
  d.samples_per_s = 4'988, d.samples_per_s_low = 4'838, d.samples_per_s_high = 5'138;
  EXPECT_EQ(RateRangeText(d), " ±150");
  d.samples_per_s_low = 0, d.samples_per_s_high = 21'250;
  EXPECT_EQ(RateRangeText(d), " (0 to 21,250)");
  d.samples_per_s = 0.9, d.samples_per_s_low = 0.86, d.samples_per_s_high = 0.94;
  EXPECT_EQ(RateRangeText(d), " ±0.04");
}

TEST(FiguresTest, WhatWasNotRecordedIsAbsent) {
  EXPECT_THAT(DeviceFigures({}), IsEmpty());
  EXPECT_THAT(HostFigures({}), IsEmpty());
}

TEST(FiguresTest, SeveralDevicesAreAveragedAndTheirFullestMemoryShown) {
  diagnose::Diagnosis d;
  d.resources = {{"gpu_sm_active{gpu=0}", Level(0.2)},
                 {"gpu_sm_active{gpu=1}", Level(0.4)},
                 {"gpu_memory_used{gpu=0}", Level(20e9)},
                 {"gpu_memory_used{gpu=1}", Level(70e9)},
                 {"gpu_memory_total{gpu=0}", Level(80e9)}};
  EXPECT_THAT(Texts(DeviceFigures(d)), ElementsAre("SM 30 %", "memory 70 of 80 GB"));
}

TEST(FiguresTest, WhatIsComputedAgainIsAFigureOfTheDevice) {
  diagnose::Diagnosis d;
  d.recomputed = 0.24;
  EXPECT_THAT(Texts(DeviceFigures(d)), ElementsAre("computed again 24 %"));
}

TEST(FiguresTest, InAContainerTheCommandsOwnProcessesCount) {
  diagnose::Diagnosis d;
  d.machine = {{"cores", "4"}, {"cores_logical", "64"}, {"cgroup_memory_limit", "16000000000"}};
  d.resources = {{"cpu_utilization", Level(0.9)},
                 {"process_cpu{role=loader}", Level(2.5)},
                 {"process_cpu{role=trainer}", Level(0.9)},
                 {"memory_used", Level(400e9)},
                 {"memory_total", Level(500e9)},
                 {"cgroup_memory_used", Level(12e9)}};
  EXPECT_THAT(Texts(HostFigures(d)), ElementsAre("CPU 3.4 of 4 cores", "RAM 12 of 16 GB"));
}

TEST(FiguresTest, OnlyGpusUsedForTrainingAreNamed) {
  diagnose::Diagnosis d;
  d.machine = {{"gpu0", "NVIDIA H200"}, {"gpu1", "NVIDIA H200"}, {"cores", "8"}};
  EXPECT_THAT(SubjectParts(d), ElementsAre("2x NVIDIA H200"));
  d.ranks.resize(1);
  d.ranks[0].device = "cuda:1";
  EXPECT_THAT(SubjectParts(d), ElementsAre("1x NVIDIA H200"));
  d.ranks[0].device = "cpu";
  EXPECT_THAT(SubjectParts(d), ElementsAre("8 CPU cores"));
}

TEST(FiguresTest, GainsThatReadTheSameAreGivenOnce) {
  diagnose::Finding finding;
  finding.speedup = {1.5, 1.499, 1.501};
  EXPECT_EQ(GainText(finding), "") << "without a method no prediction was made";
  finding.method = "replay";
  EXPECT_EQ(GainText(finding), "1.50x");
  finding.speedup.high = 1.6;
  EXPECT_EQ(GainText(finding), "1.50x to 1.60x");
}

TEST(FiguresTest, OnlyCostsToThinkAboutAreSaid) {
  diagnose::Finding finding;
  EXPECT_EQ(CostText(finding), "") << "a change of the code is what was advised";
  finding.costs = replay::Cost::kMemory;
  EXPECT_EQ(CostText(finding), ", takes more memory");
  finding.costs = replay::Cost::kNumerics;
  EXPECT_EQ(CostText(finding), ", changes the numerics");
}

TEST(RateTextTest, AnEngineThatServesHasIterationsAndNotSteps) {
  diagnose::Diagnosis d;
  d.steps_per_s = 20;
  EXPECT_EQ(RateText(d), "20 steps/s");
  d.engine = "SGLang";
  EXPECT_EQ(RateText(d), "20 iterations/s");
  d.fitness.conditions.push_back({"not-training-steps", "", 20, "steps", {fitness::Conclusion::kRates}, ""});
  EXPECT_EQ(RateText(d), "") << "what repeats may be a layer";
}

TEST(FlopsTextTest, SaysOfWhichPeakAndWhatIsMissing) {
  diagnose::Diagnosis d;
  EXPECT_EQ(FlopsText(d), "");
  d.flops = diagnose::ModelFlops{12e9, std::nullopt, "", {}};
  EXPECT_EQ(FlopsText(d), "12 GFLOP/s by the model");
  d.flops = diagnose::ModelFlops{2.5e6, std::nullopt, "", {}};
  EXPECT_EQ(FlopsText(d), "2.50 MFLOP/s by the model");
  d.flops = diagnose::ModelFlops{412e12, 0.42, "H100 SXM in bfloat16", {}};
  EXPECT_EQ(FlopsText(d), "412 TFLOP/s, 42 % of the peak of H100 SXM in bfloat16 (MFU)");
  d.flops = diagnose::ModelFlops{12e9, std::nullopt, "", {"Experts"}};
  EXPECT_EQ(FlopsText(d), "at least 12 GFLOP/s, without Experts");
}

TEST(TokenRateTextTest, PaddingIsTakenOffWhereItIsKnown) {
  diagnose::Diagnosis d;
  EXPECT_EQ(TokenRateText(d), "");
  d.tokens_per_s = 81'920;
  EXPECT_EQ(TokenRateText(d), "81,920 tokens/s");
  d.useful_tokens_per_s = 31'300;
  EXPECT_EQ(TokenRateText(d), "81,920 tokens/s, 31,300 without padding");
  d.useful_tokens_per_s = 81'920;
  EXPECT_EQ(TokenRateText(d), "81,920 tokens/s") << "nothing is padding";
}

TEST(ServedTextTest, TokensAreSaidWhereTheMarksSayThem) {
  diagnose::ServedPhase phase{"decode", 40, 0.62, 2130.0, 16.0};
  EXPECT_EQ(ServedText(phase), "40 decode iterations, 62 % of the time, 16 tokens each: 2,130 tokens/s");
  phase.tokens_per_s.reset();
  phase.tokens_per_iteration.reset();
  EXPECT_EQ(ServedText(phase), "40 decode iterations, 62 % of the time");
}

}  // namespace
}  // namespace fullbore::report
