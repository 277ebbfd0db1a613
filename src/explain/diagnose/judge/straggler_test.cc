// Ranks of traces, where waiting inside collectives is told from transfer.
#include <gmock/gmock.h>

#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/testing/made_run.h"

namespace fullbore::diagnose {
namespace {

using record::Share;
using ::testing::HasSubstr;
using testing::kMs;
using testing::MadeRun;

struct Times {
  int64_t compute_ms = 100, comm_ms = 0, wait_ms = 0;  // waiting is a part of comm
};

record::RankInfo TracedRank(int number, int64_t steps, const std::function<Times(int64_t)>& shape) {
  record::RankInfo info;
  info.rank = number;
  info.device_activity = true;
  info.comm_wait_ns = info.comm_ns = info.comm_exposed_ns = info.span_ns = 0;
  info.comm_overlapped_ns = 0;
  info.kernels = 100 * steps;
  int64_t now_ns = 1'000 * kMs;
  for (int64_t i = 0; i < steps; ++i) {
    const Times times = shape(i);
    record::Step step;
    step.index = i;
    step.share_ns[Index(Share::kCompute)] = times.compute_ms * kMs;
    step.share_ns[Index(Share::kCommExposed)] = times.comm_ms * kMs;
    step.comm_wait_ns = times.wait_ms * kMs;
    step.wall_ns = (times.compute_ms + times.comm_ms) * kMs;
    step.end_ns = now_ns += step.wall_ns;
    *info.comm_wait_ns += step.comm_wait_ns;
    *info.comm_ns += times.comm_ms * kMs;
    *info.comm_exposed_ns += times.comm_ms * kMs;
    *info.span_ns += step.wall_ns;
    info.steps.push_back(step);
  }
  record::CollectiveStats calls;
  calls.kind = "all_reduce";
  calls.group = "dp";
  calls.group_size = 4;
  calls.count = 10 * steps;
  calls.bytes = 1'000'000'000;
  calls.bytes_ns = calls.sum_ns = calls.exposed_ns = *info.comm_ns;
  calls.wait_ns = info.comm_wait_ns;
  info.tables.emplace().collectives.push_back(calls);
  return info;
}

Diagnosis DiagnoseTraces(std::vector<record::RankInfo> ranks) {
  auto recording = MadeRun(std::move(ranks));
  recording.source = "kineto";
  return Diagnose(recording);
}

const Finding* Find(const Diagnosis& diagnosis, const std::string& id) {
  for (const Finding& finding : diagnosis.findings) {
    if (finding.id == id) return &finding;
  }
  return nullptr;
}

const Evidence* FindEvidence(const Finding& finding, const std::string& what) {
  for (const Evidence& evidence : finding.evidence) {
    if (evidence.what.find(what) != std::string::npos) return &evidence;
  }
  return nullptr;
}

// Rank 1 computes 50 ms longer; all then transfer for 10 ms.
Times Early(int64_t) { return {100, 60, 50}; }
Times Late(int64_t) { return {150, 10, 0}; }

TEST(StragglerTest, IsRaisedByTheRankThatWaitsLeastInsideCollectives) {
  const Diagnosis diagnosis =
      DiagnoseTraces({TracedRank(0, 30, Early), TracedRank(1, 30, Late), TracedRank(2, 30, Early)});
  const Finding* finding = Find(diagnosis, "straggler");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, Severity::kCritical);
  EXPECT_NEAR(finding->share, 50.0 / 160, 1e-6);
  EXPECT_THAT(finding->title, HasSubstr("Rank 1 arrives last in 100 % of the steps"));
  EXPECT_THAT(finding->title, HasSubstr("it computes 50 ms longer"));
  ASSERT_NE(FindEvidence(*finding, "rank 2 waits"), nullptr);
  EXPECT_NEAR(FindEvidence(*finding, "rank 2 waits")->value, 50.0 / 160, 1e-6);
  EXPECT_EQ(FindEvidence(*finding, "rank 1 waits")->value, 0);
  EXPECT_EQ(finding->evidence[0].source, "trace");
  EXPECT_EQ(Find(diagnosis, "comm-bound"), nullptr) << "6 % of transfer is left: not worth a finding";
}

TEST(StragglerTest, IsNotRaisedByMuchTransferWithoutWaiting) {
  // Rank 1 has the least exposed communication, for it hides more of it: by waiting nobody is late.
  const auto transfers = [](int64_t) { return Times{100, 50, 0}; };
  const auto hides_some = [](int64_t) { return Times{120, 30, 0}; };
  const Diagnosis diagnosis = DiagnoseTraces({TracedRank(0, 30, transfers), TracedRank(1, 30, hides_some)});
  EXPECT_EQ(Find(diagnosis, "straggler"), nullptr);
  const Finding* finding = Find(diagnosis, "comm-bound");
  ASSERT_NE(finding, nullptr);
  EXPECT_NEAR(finding->share, 40.0 / 150, 1e-6);
  EXPECT_THAT(finding->title, HasSubstr("27 % transfer"));
  EXPECT_EQ(finding->cause, "");
}

TEST(StragglerTest, WhatIsLeftBesideAStragglerIsTransferWithItsBandwidths) {
  const auto early = [](int64_t) { return Times{100, 100, 50}; };
  const auto late = [](int64_t) { return Times{150, 50, 0}; };
  const Diagnosis diagnosis = DiagnoseTraces({TracedRank(0, 30, early), TracedRank(1, 30, late)});
  ASSERT_NE(Find(diagnosis, "straggler"), nullptr);
  EXPECT_NEAR(Find(diagnosis, "straggler")->share, 0.25, 1e-6);
  const Finding* finding = Find(diagnosis, "comm-bound");
  ASSERT_NE(finding, nullptr);
  EXPECT_NEAR(finding->share, 0.25, 1e-6) << "50 of 200 ms on either rank";
  const Evidence* exposed = FindEvidence(*finding, "all_reduce in group dp of 4 ranks: exposed, 300 calls");
  ASSERT_NE(exposed, nullptr);
  EXPECT_NEAR(exposed->value, 3'000, 1e-6);
  // 1 GB in 30 x 50 ms without the waiting.
  EXPECT_NEAR(FindEvidence(*finding, "algorithm bandwidth")->value, 1e9 / 1.5, 1);
  EXPECT_NEAR(FindEvidence(*finding, "bus bandwidth")->value, 1.5e9 / 1.5, 1);
}

TEST(StragglerTest, IsNotRaisedByRanksThatAreLateInTurns) {
  const auto turn = [](int64_t rank) {
    return [rank](int64_t i) { return i % 3 == rank ? Times{150, 10, 0} : Times{100, 60, 50}; };
  };
  const Diagnosis diagnosis =
      DiagnoseTraces({TracedRank(0, 30, turn(0)), TracedRank(1, 30, turn(1)), TracedRank(2, 30, turn(2))});
  EXPECT_EQ(Find(diagnosis, "straggler"), nullptr);
  const Finding* finding = Find(diagnosis, "comm-bound");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cause, "uneven-ranks");
  EXPECT_THAT(finding->fix.front(), HasSubstr("equal work"));
}

TEST(StragglerTest, OneStepOfEachRankIsAWarningThatSaysSo) {
  const Diagnosis diagnosis =
      DiagnoseTraces({TracedRank(0, 1, Early), TracedRank(1, 1, Late), TracedRank(2, 1, Early)});
  const Finding* finding = Find(diagnosis, "straggler");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, Severity::kWarning) << "at 31 % critical, were it known to be the same rank";
  EXPECT_THAT(finding->title, HasSubstr("In the one step recorded, rank 1 arrives last"));
  EXPECT_NEAR(FindEvidence(*finding, "rank 0 waits inside collectives")->value, 50, 1e-9);
}

TEST(StragglerTest, IsNotRaisedByWaitingThatComputationHides) {
  const auto hidden = [](int64_t) { return Times{150, 0, 50}; };
  const auto late = [](int64_t) { return Times{150, 0, 0}; };
  const Diagnosis diagnosis = DiagnoseTraces({TracedRank(0, 30, hidden), TracedRank(1, 30, late)});
  EXPECT_EQ(Find(diagnosis, "straggler"), nullptr);
  EXPECT_EQ(Find(diagnosis, "comm-bound"), nullptr);
}

TEST(StragglerTest, WithoutKnownWaitsTheExposedCommunicationTells) {
  std::vector<record::RankInfo> ranks = {TracedRank(0, 30, Early), TracedRank(1, 30, Late)};
  for (record::RankInfo& rank : ranks) {
    rank.comm_wait_ns.reset();
    for (record::Step& step : rank.steps) step.comm_wait_ns = -1;
  }
  const Diagnosis diagnosis = DiagnoseTraces(std::move(ranks));
  ASSERT_NE(Find(diagnosis, "straggler"), nullptr);
  EXPECT_NEAR(Find(diagnosis, "straggler")->share, 50.0 / 160, 1e-6);
  EXPECT_EQ(Find(diagnosis, "comm-bound"), nullptr);
}

TEST(StragglerTest, IsRaisedByTheRankForWhichTheOthersWait) {
  const auto waits = [](int64_t) { return testing::MadeStep{.comm_ms = 50}; };
  const auto late = [](int64_t) { return testing::MadeStep{.data_ms = 50}; };
  const Diagnosis diagnosis = Diagnose(MadeRun(
      {testing::MadeRank(0, 100, waits), testing::MadeRank(1, 100, late), testing::MadeRank(2, 100, waits)}));
  const Finding* finding = Find(diagnosis, "straggler");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("Rank 1"), std::string::npos);
  EXPECT_NEAR(finding->share, 1.0 / 3, 1e-6);
  EXPECT_EQ(Find(diagnosis, "comm-bound"), nullptr);
}

}  // namespace
}  // namespace fullbore::diagnose
