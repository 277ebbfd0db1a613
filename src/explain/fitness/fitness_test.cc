#include "explain/fitness/fitness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fullbore::fitness {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kMs = 1'000'000;

// Ten marked steps of 100 ms of a device, all of it recorded.
Known ATrace() {
  Known known;
  known.device = true;
  known.operations = known.kernels = 1'000;
  known.steps = 10;
  known.wall_ns = 1'000 * kMs;
  known.noticed.steps_by = record::StepsBy::kMarks;
  known.noticed.launches = 1'000;
  known.noticed.span_ns = known.noticed.stepped_ns = 1'000 * kMs;
  known.noticed.devices = 1;
  return known;
}

Known ALiveRun(int64_t steps, int64_t step_ms = 100) {
  Known known;
  known.live = true;
  known.steps = steps;
  known.wall_ns = steps * step_ms * kMs;
  return known;
}

const Condition* In(const Fitness& fitness, const std::string& id) {
  for (const Condition& condition : fitness.conditions) {
    if (condition.id == id) return &condition;
  }
  return nullptr;
}

std::string Says(const Known& known, const std::string& id) {
  const Fitness fitness = FitnessOf(known);
  const Condition* condition = In(fitness, id);
  return condition != nullptr ? condition->says : "";
}

TEST(FitnessTest, AWholeRecordingOfMarkedStepsHasNoCondition) {
  EXPECT_TRUE(FitnessOf(ATrace()).conditions.empty());
  EXPECT_TRUE(FitnessOf(ALiveRun(100)).conditions.empty());
}

TEST(FitnessTest, AFileThatBreaksOffPromisesNothingAndNamesTheByte) {
  Known known = ATrace();
  known.noticed.breaks_off_at = 12'345;
  const Fitness fitness = FitnessOf(known);
  EXPECT_THAT(Says(known, "breaks-off"), HasSubstr("at byte 12,345"));
  EXPECT_TRUE(fitness.Forbids(Conclusion::kGains));
  EXPECT_TRUE(fitness.CanBeJudged());
}

TEST(FitnessTest, EventsWithoutATimeCountFromOneInAHundredOn) {
  Known known = ATrace();
  known.noticed.left_out = 5;
  EXPECT_TRUE(FitnessOf(known).conditions.empty());
  known.noticed.left_out = 250;
  EXPECT_THAT(Says(known, "left-out"), StartsWith("250 of 1,250 events (20 %)"));
  EXPECT_TRUE(FitnessOf(known).Forbids(Conclusion::kGains));
}

TEST(FitnessTest, StepsWhoseEventsWereLostAreSaidFromAHundredthOfTheTimeOn) {
  Known known = ALiveRun(100);
  known.missed_ns = 90 * kMs;
  EXPECT_TRUE(FitnessOf(known).conditions.empty());
  known.missed_ns = 2'500 * kMs;
  EXPECT_THAT(Says(known, "missed-steps"), HasSubstr("2.5 s of 12 s of steps are left out"));
  EXPECT_FALSE(FitnessOf(known).Forbids(Conclusion::kGains)) << "those that were read are whole";
}

TEST(FitnessTest, OperationsThatWereCutAreSaidAndForbidNothing) {
  Known known = ATrace();
  known.noticed.cut = 7;
  const Fitness fitness = FitnessOf(known);
  ASSERT_NE(In(fitness, "cut"), nullptr);
  EXPECT_FALSE(fitness.Forbids(Conclusion::kGains));
}

TEST(FitnessTest, AClockThatIsOffForbidsGainsUnlessItIsCorrected) {
  Known known = ATrace();
  known.noticed.clock_ahead_ns = 8 * kMs;
  EXPECT_THAT(Says(known, "clock"), HasSubstr("8.0 ms too early"));
  EXPECT_TRUE(FitnessOf(known).Forbids(Conclusion::kGains));
  known.noticed.clock_corrected = true;
  EXPECT_FALSE(FitnessOf(known).Forbids(Conclusion::kGains));
  EXPECT_NE(Says(known, "clock"), "");
  known.noticed.clock_ahead_ns = 3'000;
  EXPECT_EQ(Says(known, "clock"), "");
}

TEST(FitnessTest, LaunchesWithoutKernelsCannotBeJudged) {
  Known known = ATrace();
  known.noticed.launches = 546;
  known.noticed.ran_nothing = 544;
  known.noticed.captures = 1;
  EXPECT_EQ(FitnessOf(known).Refusal().find("This recording cannot be judged: 544 of 546 launches ran "
                                            "nothing (a CUDA graph is being captured). "
                                            "Record the replays:"),
            0U)
      << FitnessOf(known).Refusal();
  known.noticed.captures = 0;
  EXPECT_THAT(FitnessOf(known).Refusal(), HasSubstr("newer CUPTI"));
}

TEST(FitnessTest, ALaunchOrTwoAtTheEdgesIsNothing) {
  Known known = ATrace();
  known.noticed.ran_nothing = 20;
  EXPECT_TRUE(FitnessOf(known).conditions.empty());
  known.noticed.launches = 4;
  known.noticed.ran_nothing = 3;
  EXPECT_TRUE(FitnessOf(known).conditions.empty()) << "too few to tell";
}

TEST(FitnessTest, SomeKernelsMissingEverywhereLeaveIdleTimeOpen) {
  Known known = ATrace();
  known.noticed.ran_nothing = 200;
  const Fitness fitness = FitnessOf(known);
  EXPECT_TRUE(fitness.CanBeJudged());
  EXPECT_TRUE(fitness.Forbids(Conclusion::kIdleTime));
  EXPECT_TRUE(fitness.Forbids(Conclusion::kGains));
}

TEST(FitnessTest, AStretchWithoutKernelsIsLeftOutAndTheRestIsJudged) {
  Known known = ATrace();
  known.noticed.ran_nothing = 500;
  known.noticed.bare = {{0, 500 * kMs, 500, 500}};
  known.bare_steps = 5;
  known.steps = 5;
  const Fitness fitness = FitnessOf(known);
  EXPECT_TRUE(fitness.CanBeJudged()) << fitness.Refusal();
  EXPECT_THAT(Says(known, "bare-stretch"), HasSubstr("5 steps are left out"));
  EXPECT_FALSE(fitness.Forbids(Conclusion::kIdleTime)) << "where the kernels were recorded";
  EXPECT_TRUE(fitness.Forbids(Conclusion::kGains));
}

TEST(FitnessTest, WhereMostStepsAreLeftOutTheRestIsNotTheProgram) {
  Known known = ATrace();
  known.noticed.launches = 80;
  known.noticed.ran_nothing = 36;
  known.noticed.bare = {{0, 346 * kMs, 72, 36}};
  known.bare_steps = 36;
  known.steps = 4;
  EXPECT_THAT(FitnessOf(known).Refusal(), HasSubstr("36 of 80 launches ran nothing"));
}

TEST(FitnessTest, LaunchesWithoutAnyOperationOfADeviceCannotBeJudged) {
  Known known = ATrace();
  known.device = false;
  known.operations = known.kernels = 0;
  EXPECT_FALSE(FitnessOf(known).CanBeJudged());
  known.noticed.launches = 0;
  EXPECT_TRUE(FitnessOf(known).CanBeJudged()) << "a program on a CPU";
}

TEST(FitnessTest, AFewKernelsWithoutAStepCannotBeJudged) {
  Known known = ATrace();
  known.steps = 1;
  known.kernels = known.noticed.launches = 4;
  known.noticed.steps_by = record::StepsBy::kNothing;
  EXPECT_THAT(FitnessOf(known).Refusal(), StartsWith("This recording cannot be judged: 4 kernels in"));
  known.shapes = true;
  EXPECT_TRUE(FitnessOf(known).CanBeJudged()) << "how well they use the device can be";
  known.shapes = false;
  known.noticed.steps_by = record::StepsBy::kMarks;
  EXPECT_TRUE(FitnessOf(known).CanBeJudged()) << "a marked step is one";
}

TEST(FitnessTest, OneStepPromisesNothingMarkedOrNot) {
  for (const auto by : {record::StepsBy::kMarks, record::StepsBy::kNothing}) {
    Known known = ATrace();
    known.steps = 1;
    known.noticed.steps_by = by;
    const Fitness fitness = FitnessOf(known);
    EXPECT_TRUE(fitness.CanBeJudged());
    EXPECT_TRUE(fitness.Forbids(Conclusion::kGains));
    EXPECT_TRUE(fitness.Forbids(Conclusion::kHealthy));
  }
}

TEST(FitnessTest, AFewStepsOfALiveRunAreTooEarly) {
  EXPECT_THAT(FitnessOf(ALiveRun(3)).Refusal(), StartsWith("Too early to judge: 3 steps in 300 ms"));
  EXPECT_TRUE(FitnessOf(ALiveRun(5)).CanBeJudged());
  EXPECT_TRUE(FitnessOf(ALiveRun(3, 20'000)).CanBeJudged()) << "a minute is no accident";
  Known trace = ATrace();
  trace.steps = 3;
  EXPECT_TRUE(FitnessOf(trace).CanBeJudged()) << "whoever records a trace waits for the steps that count";
}

TEST(FitnessTest, PeriodsAreNotCalledSteps) {
  Known known = ATrace();
  known.noticed.steps_by = record::StepsBy::kPeriod;
  EXPECT_TRUE(FitnessOf(known).Forbids(Conclusion::kRates));
  EXPECT_FALSE(FitnessOf(known).Forbids(Conclusion::kGains));
  known.noticed.engine = "vLLM";
  EXPECT_THAT(Says(known, "not-training-steps"), HasSubstr("layers of vLLM"));
  known.noticed = ATrace().noticed;
  known.noticed.steps_by = record::StepsBy::kOptimizer;
  EXPECT_FALSE(FitnessOf(known).Forbids(Conclusion::kRates));
}

TEST(FitnessTest, AColdStartCannotBeJudgedUnlessTheWarmPartIsThere) {
  Known known = ATrace();
  known.noticed.cold_calls = 38;
  known.noticed.cold_ns = 900 * kMs;
  EXPECT_THAT(FitnessOf(known).Refusal(), HasSubstr("38 calls took a hundred times as long"));
  known.warmup_ns = 900 * kMs;
  EXPECT_TRUE(FitnessOf(known).conditions.empty()) << "the cold step is not among those that are judged";
  known.warmup_ns = 0;
  known.noticed.cold_ns = 100 * kMs;
  EXPECT_TRUE(FitnessOf(known).CanBeJudged());
  EXPECT_TRUE(FitnessOf(known).Forbids(Conclusion::kGains));
}

TEST(FitnessTest, CoverageIsSaidBelowNinetyPercent) {
  Known known = ATrace();
  known.noticed.stepped_ns = 920 * kMs;
  known.work_known = 0.95;
  EXPECT_TRUE(FitnessOf(known).conditions.empty());
  known.noticed.stepped_ns = 700 * kMs;
  known.work_known = 0.85;
  EXPECT_THAT(Says(known, "steps-cover"), HasSubstr("70 %"));
  EXPECT_THAT(Says(known, "work-known"), HasSubstr("85 %"));
  EXPECT_FALSE(FitnessOf(known).Forbids(Conclusion::kGains));
  EXPECT_FALSE(FitnessOf(known).Forbids(Conclusion::kOfTheDevice));
  known.noticed.stepped_ns = 300 * kMs;
  known.work_known = 0.01;
  EXPECT_TRUE(FitnessOf(known).Forbids(Conclusion::kGains));
  EXPECT_TRUE(FitnessOf(known).Forbids(Conclusion::kOfTheDevice));
}

TEST(FitnessTest, NoiseForbidsOnlyWhatItCanOverturn) {
  Known known = ALiveRun(100);
  known.doubt.contended_cores = 0.96;
  known.doubt.cores = 2;
  EXPECT_THAT(Says(known, "noise"), StartsWith("Noisy: other programs keep 0.96 of 2 cores busy"));
  EXPECT_FALSE(FitnessOf(known).Forbids(Conclusion::kGains));
  known.doubt.of_mean_step = 0.2;
  EXPECT_TRUE(FitnessOf(known).Forbids(Conclusion::kSmallGains));
}

TEST(FitnessTest, AnotherRanksDamageIsSaidOfItAndForbidsGains) {
  Fitness fitness = FitnessOf(ATrace());
  Known known = ATrace();
  known.noticed.ran_nothing = 900;
  AddRank(3, known, fitness);
  ASSERT_EQ(fitness.conditions.size(), 1U);
  EXPECT_THAT(fitness.conditions[0].says, StartsWith("Rank 3: 900 of 1,000 launches"));
  EXPECT_TRUE(fitness.CanBeJudged());
  EXPECT_TRUE(fitness.Forbids(Conclusion::kGains));
}

}  // namespace
}  // namespace fullbore::fitness
