// What must hold of every account and every job, tried on random recordings: parts sum to what was given, to the
// nanosecond, and the bars of a job to what was paid.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/clock.h"
#include "explain/diagnose/testing/made_run.h"
#include "fleet/job.h"

namespace fullbore::fleet {
namespace {

using diagnose::testing::MadeRank;
using diagnose::testing::MadeRun;
using diagnose::testing::MadeStep;
using record::HostOther;
using record::Share;

constexpr size_t kOtherParts = record::kHostOtherCount;

class RandomRunTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  int64_t UpTo(int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random_); }
  bool OneIn(int64_t n) { return UpTo(n - 1) == 0; }

  record::RankInfo ARank(int rank, int64_t steps) {
    const int64_t waits = UpTo(120), besides = OneIn(3) ? UpTo(90) : 0, comm = OneIn(3) ? UpTo(90) : 0;
    record::RankInfo info = MadeRank(rank, steps, [&](int64_t) {
      return MadeStep{.data_ms = waits, .forward_ms = 1 + UpTo(50), .other_ms = besides, .comm_ms = comm};
    });
    int64_t now_ns = info.steps.empty() ? 0 : info.steps.front().end_ns - info.steps.front().wall_ns;
    for (record::Step& step : info.steps) {
      if (OneIn(6)) Besides(step);
      step.end_ns = now_ns += step.wall_ns;
    }
    if (OneIn(2)) SumUp(info);
    if (OneIn(4)) {
      info.facts["checkpoints"] =
          R"({"count": 1, "last_end_ns": )" + std::to_string(UpTo(now_ns + 1'000'000'000)) + "}";
    }
    return info;
  }

  void Besides(record::Step& step) {
    const int64_t ns = UpTo(400'000'001);
    step.host_other_ns[static_cast<size_t>(UpTo(kOtherParts - 1))] += ns;
    step.share_ns[Index(Share::kHostOther)] += ns;
    step.wall_ns += ns;
  }

  // As of a long run: all steps in windows, and few of them in full.
  void SumUp(record::RankInfo& info) {
    for (size_t i = 0; i < info.steps.size(); i += 7) {
      record::StepWindow& window = info.windows.emplace_back();
      window.begin_ns = info.steps[i].end_ns - info.steps[i].wall_ns;
      window.first_step = info.steps[i].index;
      for (size_t k = i; k < std::min(i + 7, info.steps.size()); ++k) {
        const record::Step& step = info.steps[k];
        ++window.steps;
        window.end_ns = step.end_ns;
        for (size_t s = 0; s < record::kShareCount; ++s) window.share_ns[s] += step.share_ns[s];
        for (size_t s = 0; s < kOtherParts; ++s) window.host_other_ns[s] += step.host_other_ns[s];
      }
    }
    if (info.steps.size() > 30) info.steps.resize(info.steps.size() - 20);
  }

  record::Recording ARecording() {
    std::vector<record::RankInfo> ranks;
    const int64_t count = UpTo(3), steps = OneIn(5) ? UpTo(2) : UpTo(120);
    for (int64_t rank = 0; rank < count; ++rank) ranks.push_back(ARank(static_cast<int>(rank), steps));
    record::Recording run = MadeRun(std::move(ranks));
    record::Stage& stage = run.stages[0];
    stage.begin_ns = UpTo(1'000'000'007);
    stage.end_ns = stage.begin_ns + UpTo(40'000'000'003);
    if (OneIn(3)) stage.exit_status = static_cast<int>(UpTo(2));
    if (!OneIn(4)) stage.state = record::StageState::kEnded;
    run.id = std::to_string(UpTo(1 << 30));
    run.wall_offset_ns = UpTo(100'000'000'000);
    run.machine["job_id"] = "4711";
    run.machine["job_gpus"] = std::to_string(1 + UpTo(7));
    if (OneIn(2)) run.machine["job_restarts"] = std::to_string(1 + UpTo(2));
    if (OneIn(2)) run.machine["job_start_unix_s"] = std::to_string(UpTo(100));
    return run;
  }

  std::mt19937 random_{GetParam()};
};

TEST_P(RandomRunTest, PartsSumToWhatWasGiven) {
  const record::Recording run = ARecording();
  for (const bool cut_off : {false, true}) {
    for (const bool saves : {false, true}) {
      const RunAccount account = AccountOf(run, {cut_off, saves});
      int64_t sum = 0;
      for (const Part& part : account.parts) {
        EXPECT_GT(part.device_ns, 0) << Name(part.kind);
        sum += part.device_ns;
      }
      EXPECT_EQ(sum, account.given_ns);
    }
  }
}

TEST_P(RandomRunTest, BarsSumToWhatWasPaidAndEachToItsRuns) {
  std::vector<RunAccount> runs;
  for (int64_t i = UpTo(5); i >= 0; --i) runs.push_back(AccountOf(ARecording(), {OneIn(2), OneIn(2)}));
  std::vector<Allocation> allocations;
  for (int64_t i = UpTo(3); i > 0; --i) {
    const int64_t begin_ns = UpTo(100) * kNsPerSecond;
    allocations.push_back({begin_ns, begin_ns + UpTo(100) * kNsPerSecond, UpTo(4), ""});
  }
  std::ranges::sort(allocations, {}, &Allocation::begin_unix_ns);
  const Job job = JobOf(runs, allocations);
  int64_t paid = 0, given = 0, between = 0;
  for (const Bar& bar : job.bars) {
    int64_t of_runs = 0;
    for (const Bar::Of& of : bar.of) of_runs += of.device_ns;
    EXPECT_EQ(of_runs, bar.device_ns);
    paid += bar.device_ns;
    if (bar.kind == Kind::kBetween) between += bar.device_ns;
  }
  for (const RunAccount& run : job.runs) given += run.given_ns;
  EXPECT_EQ(paid, job.paid_ns);
  EXPECT_EQ(paid, given + between);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomRunTest, ::testing::Range(0U, 300U));

}  // namespace
}  // namespace fullbore::fleet
