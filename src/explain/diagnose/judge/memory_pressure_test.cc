#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using testing::ACommandWithoutTraining;
using testing::Advises;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using testing::FindsCause;
using ::testing::Not;

ARun AFilledGpu(double used) {
  return ATraining().OnGpu(Metric::kGpuMemoryUsed, used).OnGpu(Metric::kGpuMemoryTotal, 80e9);
}

TEST(MemoryPressureTest, IsRaisedByADeviceThatIsNearlyFull) {
  const Diagnosis nearly = Diagnose(AFilledGpu(73e9)), full = Diagnose(AFilledGpu(79e9));
  ASSERT_THAT(nearly, Finds("memory-pressure"));
  EXPECT_EQ(FindingIn(nearly, "memory-pressure")->severity, Severity::kWarning);
  EXPECT_EQ(FindingIn(full, "memory-pressure")->severity, Severity::kCritical);
}

TEST(MemoryPressureTest, IsNotRaisedBelowNineTenths) {
  EXPECT_THAT(Diagnose(AFilledGpu(71e9)), Not(Finds("memory-pressure")));
}

TEST(MemoryPressureTest, IsRaisedByASmallDeviceBesideALargeOne) {
  EXPECT_THAT(Diagnose(AFilledGpu(10e9)
                           .OnGpu(Metric::kGpuMemoryUsed, 23.5e9, "1")
                           .OnGpu(Metric::kGpuMemoryTotal, 24e9, "1")),
              Finds("memory-pressure"));
}

// A run that ended with a status, after torch said this.
record::Recording Refused(record::Recording recording, const char* unallocated, int exit_status = 1) {
  recording.stages.front().messages.push_back(
      {0, record::Severity::kInfo, "device-memory",
       std::string(
           "train.py:40: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 24.00 GiB "
           "of which 512.00 MiB is free. Of the allocated memory 20.25 GiB is allocated by PyTorch, and ") +
           unallocated + " is reserved by PyTorch but unallocated."});
  recording.stages.front().exit_status = exit_status;
  return recording;
}

TEST(MemoryPressureTest, IsRaisedByADeviceThatEndedTheRun) {
  const Diagnosis diagnosis = Diagnose(Refused(ATraining(), "200.00 MiB"));
  ASSERT_EQ(diagnosis.findings.front().id, "memory-pressure");
  EXPECT_EQ(
      diagnosis.findings.front().title,
      "The device had no memory left, which ended the run: train.py:40 asked for 1.6 GB, and of 26 GB 537 MB were "
      "free.");
  EXPECT_THAT(diagnosis.findings.front(), Advises("fullbore explain snapshot.pickle"));
  EXPECT_THAT(diagnosis.findings.front(), Not(Advises("expandable_segments")));
}

TEST(MemoryPressureTest, TellsMemoryInPiecesFromMemoryThatIsUsed) {
  const Diagnosis diagnosis = Diagnose(Refused(ATraining(), "3.00 GiB"));
  EXPECT_THAT(diagnosis, FindsCause("memory-pressure", "fragmented"));
  EXPECT_THAT(diagnosis.findings.front(), Advises("expandable_segments"));
}

TEST(MemoryPressureTest, IsRaisedBeforeTheFirstStep) {
  const Diagnosis diagnosis = Diagnose(Refused(ACommandWithoutTraining(1000), "200.00 MiB"));
  ASSERT_FALSE(diagnosis.findings.empty());
  EXPECT_EQ(diagnosis.findings.front().id, "memory-pressure");
}

// Three batches went through, of 9 MB a token beside 20 GB, before one of 1,000 tokens.
ARun AfterBatchesOf(std::initializer_list<int> widths) {
  ARun run = ATraining();
  std::string peaks;
  for (const int width : widths)
    peaks += (peaks.empty() ? "" : ",") + std::string("[1, ") + std::to_string(width) + ", " +
             std::to_string(width) + ", " + std::to_string(20e9 + 9e6 * width) + ", 5]";
  run.rank().facts["memory"] = R"({"weights": {"float32": 20e9}, "total": 26e9, "peaks": [)" + peaks +
                               R"(], "under_way": [1, 1000, 1000]})";
  return run;
}

TEST(MemoryPressureTest, SaysWhichBatchWouldHaveFitted) {
  const Diagnosis diagnosis = Diagnose(Refused(AfterBatchesOf({50, 100, 200}), "200.00 MiB"));
  EXPECT_THAT(
      diagnosis.findings.front().title,
      ::testing::EndsWith(
          "The batch had 1 row of 1,000 tokens; not one such row, or as many of 223 tokens would have fitted "
          "with as little in pieces, by a line through the peaks of 3 smaller ones."));
}

TEST(MemoryPressureTest, SaysOfNoBatchThatItWouldHaveFittedAfterTwoSizes) {
  const Diagnosis diagnosis = Diagnose(Refused(AfterBatchesOf({50, 100}), "200.00 MiB"));
  EXPECT_THAT(diagnosis.findings.front().title, Not(::testing::HasSubstr("would have fitted")));
}

// Retries since the start, a second apart.
record::Recording Retrying(std::initializer_list<double> counts) {
  record::Recording recording = ATraining();
  record::Series series;
  series.key = record::KeyOf(Metric::kTorchRetries, {{"rank", "0"}});
  int64_t t_ns = recording.stages.front().begin_ns;
  for (const double count : counts) series.readings.push_back({t_ns += 1'000'000'000, count});
  recording.stages.front().series.push_back(std::move(series));
  return recording;
}

TEST(MemoryPressureTest, IsRaisedByRetriesThatGoOn) {
  const Diagnosis diagnosis = Diagnose(Retrying({1, 2, 3, 4}));
  ASSERT_THAT(diagnosis, FindsCause("memory-pressure", "retries"));
  EXPECT_THAT(FindingIn(diagnosis, "memory-pressure")->title,
              ::testing::HasSubstr("no more memory 1 time in"));
}

TEST(MemoryPressureTest, IsNotRaisedByRetriesOfTheStart) {
  EXPECT_THAT(Diagnose(Retrying({0, 2, 2, 2})), Not(Finds("memory-pressure")));
}

TEST(MemoryPressureTest, IsNotRaisedWhereTheRunWentOn) {
  EXPECT_THAT(Diagnose(Refused(ATraining(), "3.00 GiB", 0)), Not(Finds("memory-pressure")));
}

}  // namespace
}  // namespace fullbore::diagnose
