#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using testing::FindsCause;
using ::testing::HasSubstr;
using testing::kMs;
using ::testing::Not;

constexpr double kMB = 1e6;

// 100 steps in ten seconds, during which the memory of a role follows `bytes` of the seconds, ten times a second.
record::Recording WithMemory(const std::function<double(double)>& bytes, const std::string& role = "trainer",
                             double available = 1e9) {
  record::Recording recording = ATraining().Reading(Metric::kMemoryAvailable, available);
  record::Series series{record::KeyOf(Metric::kProcessMemory, {{"role", role}}), {}};
  for (int64_t i = 0; i < 100; ++i)
    series.readings.push_back({1'000 * kMs + i * 100 * kMs, bytes(0.1 * static_cast<double>(i))});
  recording.stages.front().series.push_back(std::move(series));
  return recording;
}

TEST(MemoryGrowthTest, IsRaisedByMemoryThatRisesAllTheTime) {
  const Diagnosis diagnosis = Diagnose(WithMemory([](double s) { return 500 * kMB + 20 * kMB * s; }));
  ASSERT_THAT(diagnosis, FindsCause("memory-growth", "training"));
  const Finding& finding = *FindingIn(diagnosis, "memory-growth");
  EXPECT_EQ(finding.severity, Severity::kCritical);
  EXPECT_THAT(finding.title, HasSubstr("by 2.0 MB a step"));
  EXPECT_THAT(finding.title, HasSubstr("the 1.0 GB that are left last for 50 s"));
  EXPECT_EQ(finding.method, "") << "it is not the speed that is at stake";
}

TEST(MemoryGrowthTest, NamesTheContainerThatGrowsAndTheLineThatAddsToIt) {
  record::Recording recording = WithMemory([](double s) { return 500 * kMB + 20 * kMB * s; });
  recording.stages.front().ranks.front().facts["growing"] =
      R"([{"name": "self.history", "from": 40, "to": 900, "steps": 1720, "file": "/w/train.py", "line": 57,
          "holds": "tensors that keep their graphs"}, {"name": 7, "line": "x"}, 3])";
  const Diagnosis diagnosis = Diagnose(recording);
  const Finding& finding = *FindingIn(diagnosis, "memory-growth");
  EXPECT_EQ(
      finding.fix.front(),
      "self.history (train.py:57) grows: from 40 to 900 entries in 1,720 steps; it holds tensors that keep "
      "their graphs");
  EXPECT_EQ(finding.where.front().line, 57);
}

TEST(MemoryGrowthTest, IsNotRaisedByWhatIsCollectedFromTimeToTime) {
  const auto saw = [](double s) { return 500 * kMB + 300 * kMB * std::fmod(s, 2.5); };
  EXPECT_THAT(Diagnose(WithMemory(saw)), Not(Finds("memory-growth")));
}

TEST(MemoryGrowthTest, IsRaisedByALeakUnderCollections) {
  const auto saw = [](double s) { return 500 * kMB + 30 * kMB * s + 20 * kMB * std::fmod(s, 0.7); };
  EXPECT_THAT(Diagnose(WithMemory(saw)), Finds("memory-growth"));
}

TEST(MemoryGrowthTest, IsNotRaisedByACacheThatFills) {
  const auto filling = [](double s) { return 500 * kMB + 400 * kMB * (1 - std::exp(-s / 2)); };
  EXPECT_THAT(Diagnose(WithMemory(filling)), Not(Finds("memory-growth")));
}

TEST(MemoryGrowthTest, IsNotRaisedByAFewMegabytes) {
  EXPECT_THAT(Diagnose(WithMemory([](double s) { return 500 * kMB + 1 * kMB * s; })),
              Not(Finds("memory-growth")));
}

TEST(MemoryGrowthTest, ThatOfWorkersIsTheirs) {
  const auto grows = [](double s) { return 500 * kMB + 20 * kMB * s; };
  EXPECT_THAT(Diagnose(WithMemory(grows, "loader")), FindsCause("memory-growth", "workers"));
}

// Workers of whose private memory (PSS) one reading in two seconds is new, beside what counts as theirs (RSS).
Diagnosis OfWorkers(const std::function<double(double)>& private_bytes,
                    const std::function<double(double)>& bytes, int64_t workers = 0) {
  record::Recording recording = WithMemory(bytes, "loader");
  record::Series pss{record::KeyOf(Metric::kProcessPss, {{"role", "loader"}}), {}};
  for (int64_t i = 0; i < 10; ++i)
    pss.readings.push_back({1'000 * kMs + i * 1'000 * kMs, private_bytes(static_cast<double>(i / 2 * 2))});
  recording.stages.front().series.push_back(std::move(pss));
  if (workers > 0)
    recording.stages.front().ranks.front().loaders.push_back(testing::MadeLoader(workers, 100, 20, 20));
  return Diagnose(recording);
}

TEST(MemoryGrowthTest, OfPagesThatWorkersCopyShowsInTheirPrivateMemoryAlone) {
  const auto copied = [](double s) { return 100 * kMB + 12 * kMB * s; };
  const auto all = [](double) { return 800 * kMB; };
  const Diagnosis diagnosis = OfWorkers(copied, all, /*workers=*/2);
  ASSERT_THAT(diagnosis, FindsCause("memory-growth", "copied"));
  const Finding& finding = *FindingIn(diagnosis, "memory-growth");
  EXPECT_THAT(finding.title, HasSubstr("The private memory of the loader's workers grows by 12 MB/s"));
  EXPECT_THAT(finding.title, HasSubstr("they can take at most 906 MB more, of 1.0 GB that are left"))
      << "604 MB of two workers stand for 453 MB of the training, of which there will be three";
  EXPECT_EQ(finding.severity, Severity::kInfo) << "what they share fits";
  EXPECT_FALSE(finding.stands_still);
}

TEST(MemoryGrowthTest, OfPagesThatOneWorkerCopiesIsTwiceWhatItMapsBeyondItsPart) {
  const auto copied = [](double s) { return 100 * kMB + 12 * kMB * s; };
  const auto all = [](double) { return 800 * kMB; };
  for (const int64_t workers : {0, 1}) {  // 0: not known how many
    const Diagnosis diagnosis = OfWorkers(copied, all, workers);
    ASSERT_THAT(diagnosis, FindsCause("memory-growth", "copied"));
    EXPECT_THAT(FindingIn(diagnosis, "memory-growth")->title, Not(HasSubstr("at most"))) << "1.2 GB of 1.0";
  }
}

TEST(MemoryGrowthTest, OfPagesThatWorkersCopyEndsTheRunWhereNotAllOfThemFit) {
  const auto copied = [](double s) { return 100 * kMB + 12 * kMB * s; };
  const Diagnosis diagnosis = OfWorkers(copied, [](double) { return 80'000 * kMB; });
  ASSERT_THAT(diagnosis, FindsCause("memory-growth", "copied"));
  const Finding& finding = *FindingIn(diagnosis, "memory-growth");
  EXPECT_EQ(finding.severity, Severity::kCritical);
  EXPECT_THAT(finding.title, HasSubstr("the 1.0 GB that are left last for 1 min"));
}

TEST(MemoryGrowthTest, OfWorkersThatAllocateIsNoCopying) {
  const auto grows = [](double s) { return 500 * kMB + 12 * kMB * s; };
  EXPECT_THAT(OfWorkers(grows, grows), FindsCause("memory-growth", "workers"));
}

TEST(MemoryGrowthTest, OfWorkersThatFillACacheIsNone) {
  const auto filling = [](double s) { return 100 * kMB + 400 * kMB * (1 - std::exp(-s / 2)); };
  EXPECT_THAT(OfWorkers(filling, filling), Not(Finds("memory-growth")));
}

TEST(MemoryGrowthTest, ComesFirstWhereItSoonEndsTheRunButNotInOneThatEnded) {
  record::Recording recording = WithMemory([](double s) { return 500 * kMB + 20 * kMB * s; });
  EXPECT_TRUE(FindingIn(Diagnose(recording), "memory-growth")->stands_still);
  recording.stages.front().exit_status = 0;
  EXPECT_FALSE(FindingIn(Diagnose(recording), "memory-growth")->stands_still);
  const Diagnosis later =
      Diagnose(WithMemory([](double s) { return 500 * kMB + 5 * kMB * s; }, "trainer", 10e9));
  EXPECT_FALSE(FindingIn(later, "memory-growth")->stands_still) << "ten seconds do not tell of half an hour";
}

TEST(MemoryGrowthTest, OfWhatWorkersOnlyShareIsNotTheirs) {
  const auto constant = [](double) { return 100 * kMB; };
  const auto shared = [](double s) { return 500 * kMB + 20 * kMB * s; };
  EXPECT_THAT(OfWorkers(constant, shared), Not(Finds("memory-growth")));
}

TEST(MemoryGrowthTest, WhereItLastsForMonthsItIsOnlySaid) {
  const auto grows = [](double s) { return 500 * kMB + 5 * kMB * s; };
  const Diagnosis diagnosis = Diagnose(WithMemory(grows, "trainer", /*available=*/100e12));
  ASSERT_THAT(diagnosis, Finds("memory-growth"));
  EXPECT_EQ(FindingIn(diagnosis, "memory-growth")->severity, Severity::kInfo);
}

}  // namespace
}  // namespace fullbore::diagnose
