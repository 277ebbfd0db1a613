#include "measure/collect/rank_tracker.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/testing/scratch_directory.h"
#include "record/run_reader.h"

namespace fullbore::collect {
namespace {

using nlohmann::json;
using record::ChannelRecord;
using record::EventKind;

constexpr int64_t kMs = 1'000'000;

ChannelRecord Event(EventKind kind, int64_t begin, int64_t end, int64_t a = 0) {
  ChannelRecord event{};
  event.kind = static_cast<uint16_t>(kind);
  event.begin_ns = begin;
  event.end_ns = end;
  event.a = a;
  return event;
}

class RankTrackerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto writer = record::RunWriter::Open(path_, {"run", "train", {"x"}, "", {}}, 0, 0);
    ASSERT_TRUE(writer.ok());
    writer_.emplace(std::move(*writer));
  }

  void Step(int64_t at_ms, int64_t length_ms) {
    const int64_t at = at_ms * kMs, end = (at_ms + length_ms) * kMs;
    tracker_.OnTrainerEvent(Event(EventKind::kNext, at, at + kMs, 16));
    tracker_.OnTrainerEvent(Event(EventKind::kForward, at + kMs, at + 2 * kMs, 1));
    tracker_.OnTrainerEvent(Event(EventKind::kOptimizer, end - kMs, end, 1));
  }

  record::RankInfo Finish() {
    tracker_.Drain(*writer_, true);
    EXPECT_TRUE(writer_->Close(1'000'000 * kMs, record::StageState::kEnded, 0, false).ok());
    auto run = record::ReadRun(path_);
    EXPECT_TRUE(run.ok());
    return run->stages.at(0).ranks.at(0);
  }

  ScratchDirectory directory_;
  const std::string path_ = directory_ / "run.fbr";
  std::optional<record::RunWriter> writer_;
  RankTracker tracker_{42};
};

TEST_F(RankTrackerTest, AProcessThatNeverStepsIsNotARank) {
  tracker_.OnLine(json::parse(R"({"k": "hello", "rank": 3})"));
  EXPECT_FALSE(tracker_.is_training());
  EXPECT_EQ(tracker_.wanted_rank(), 3);
}

TEST_F(RankTrackerTest, WindowsHoldEveryStepOnce) {
  for (int64_t i = 0; i < 100; ++i) Step(1000 + i * 50, 50);
  const auto rank = Finish();
  int64_t steps = 0, samples = 0;
  for (const auto& window : rank.windows) steps += window.steps, samples += window.samples;
  EXPECT_EQ(steps, 100);
  EXPECT_EQ(samples, 1600);
  EXPECT_NEAR(static_cast<double>(rank.windows.size()), 5, 1);  // 5 s of steps
}

TEST_F(RankTrackerTest, ALongRunKeepsItsFirstStepsItsSlowestAndStretchesBetween) {
  constexpr int64_t kSteps = 12'000;
  for (int64_t i = 0; i < kSteps; ++i) Step(1000 + i * 100, i == 9'000 ? 900 : 100);
  const auto rank = Finish();
  EXPECT_LT(rank.steps.size(), 4'000u);
  EXPECT_EQ(rank.steps[100].index, 100);
  EXPECT_TRUE(std::any_of(rank.steps.begin(), rank.steps.end(),
                          [](const auto& step) { return step.index == 9'000; }));
  EXPECT_GT(rank.steps.back().index, kSteps - 1'500);
  int64_t steps = 0;
  for (const auto& window : rank.windows) steps += window.steps;
  EXPECT_EQ(steps, kSteps);
}

// One after the last step is in no step, and yet what a restart goes on from.
TEST_F(RankTrackerTest, TheLastCheckpointIsKnownWhereverItWas) {
  const auto save = [&](record::OtherKind what, int64_t begin_ms, int64_t end_ms) {
    ChannelRecord event = Event(EventKind::kOther, begin_ms * kMs, end_ms * kMs);
    event.id = static_cast<uint16_t>(what);
    tracker_.OnTrainerEvent(event);
  };
  Step(1000, 50);
  save(record::OtherKind::kCheckpoint, 1050, 1080);
  Step(1080, 50);
  save(record::OtherKind::kCheckpoint, 1130, 1175);
  save(record::OtherKind::kGarbageCollection, 1175, 1180);
  const json stated = json::parse(Finish().facts.at("checkpoints"));
  EXPECT_EQ(stated, (json{{"count", 2}, {"last_end_ns", 1175 * kMs}}));
}

TEST_F(RankTrackerTest, WithoutACheckpointNothingIsSaidOfOne) {
  Step(1000, 50);
  EXPECT_FALSE(Finish().facts.contains("checkpoints"));
}

TEST_F(RankTrackerTest, FetchesOfWorkersAreSummedByLoader) {
  tracker_.OnLine(json::parse(R"({"k": "loader", "id": 0, "where": "/x/train.py:9", "dataset": "Photos",
                                  "args": {"num_workers": 2, "batch_size": 16, "prefetch_factor": null}})"));
  for (const int64_t pid : {7, 8}) {
    for (int64_t i = 0; i < 3; ++i) {
      ChannelRecord fetch =
          Event(EventKind::kFetch, (100 + i * 50) * kMs, (130 + i * 50) * kMs, 16 | int64_t{4000} << 32);
      fetch.b = 20 * kMs;
      fetch.c = 2 * kMs;
      tracker_.OnWorkerEvent(pid, fetch);
    }
  }
  Step(1000, 50);
  const auto rank = Finish();
  const record::Loader& loader = rank.loaders.at(0);
  EXPECT_EQ(loader.num_workers, 2);
  EXPECT_EQ(loader.dataset, "Photos");
  EXPECT_TRUE(loader.feeds_training);
  EXPECT_EQ(loader.batches, 6);
  EXPECT_EQ(loader.samples, 96);
  EXPECT_EQ(loader.fetch_ns, 6 * 30 * kMs);
  EXPECT_EQ(loader.cpu_ns, 6 * 20 * kMs);
  EXPECT_EQ(loader.worker_span_ns, 2 * 130 * kMs);
  EXPECT_EQ(loader.worker_idle_ns, 2 * 40 * kMs);
  EXPECT_NEAR(loader.slowest_sample_ns.Quantile(0.5), 4 * kMs, 0.05 * kMs);
}

TEST_F(RankTrackerTest, NoPartOfAFetchLastsLongerThanAllOfIt) {
  ChannelRecord fetch = Event(EventKind::kFetch, 100 * kMs, 130 * kMs, 16);
  fetch.b = 33 * kMs;
  fetch.c = 2 * kMs;
  fetch.d = 31 * kMs;
  tracker_.OnWorkerEvent(7, fetch);
  Step(1000, 50);
  const record::Loader loader = Finish().loaders.at(0);
  EXPECT_EQ(loader.cpu_ns, 30 * kMs);
  EXPECT_EQ(loader.collate_ns, 2 * kMs);
  EXPECT_EQ(loader.run_delay_ns, 30 * kMs);
}

TEST_F(RankTrackerTest, AnEpochsBeginIncludesTheEndOfTheWorkersBeforeIt) {
  const auto next = [&](int64_t begin_ms, int64_t end_ms, int64_t samples, int64_t first) {
    ChannelRecord event = Event(EventKind::kNext, begin_ms * kMs, end_ms * kMs, samples);
    event.c = first;
    tracker_.OnTrainerEvent(event);
  };
  next(0, 20, 16, 1);  // the first epoch is no restart
  next(30, 31, 16, 0);
  next(40, 55, 0, 0);  // no batch any more: the workers end
  next(55, 85, 16, 1);
  next(90, 91, 16, 0);
  Step(1000, 50);
  const auto rank = Finish();
  EXPECT_EQ(rank.loaders.at(0).restarts, 1);
  EXPECT_EQ(rank.loaders.at(0).restart_wait_ns, (15 + 30) * kMs);
}

TEST_F(RankTrackerTest, AnEpochWhoseFirstBatchNeverCameIsNoRestart) {
  const auto next = [&](int64_t begin_ms, int64_t end_ms, int64_t samples, int64_t first) {
    ChannelRecord event = Event(EventKind::kNext, begin_ms * kMs, end_ms * kMs, samples);
    event.c = first;
    tracker_.OnTrainerEvent(event);
  };
  next(0, 20, 16, 1);
  next(40, 55, 0, 0);
  next(55, 85, 16, 1);
  next(90, 95, 0, 0);
  next(100, 220'000, 0, 1);  // until somebody pressed Ctrl-C
  Step(1000, 50);
  const auto rank = Finish();
  EXPECT_EQ(rank.loaders.at(0).restarts, 1);
  EXPECT_EQ(rank.loaders.at(0).restart_wait_ns, (15 + 30) * kMs);
}

TEST_F(RankTrackerTest, WhereTheSamplesOfBatchesAreNotKnownEachEpochCounts) {
  for (const int64_t first : {1, 0, 1, 0, 1}) {
    ChannelRecord event = Event(EventKind::kNext, 0, 10 * kMs, /*a=*/0);
    event.c = first;
    tracker_.OnTrainerEvent(event);
  }
  Step(1000, 50);
  EXPECT_EQ(Finish().loaders.at(0).restarts, 2);
}

TEST_F(RankTrackerTest, AFetchThatDoesNotEndIsStatedWithItsWorkerAndItsLine) {
  for (const int64_t pid : {7, 8}) {
    tracker_.OnWorkerLine(
        pid, {{"k", "line"}, {"id", 1}, {"file", "/x/train.py"}, {"line", 31}, {"function", "load"}});
    for (int64_t s = 1; s <= 60; ++s) {
      ChannelRecord seen = Event(EventKind::kLine, s * 1'000 * kMs, s * 1'000 * kMs, 1);
      seen.c = static_cast<int64_t>(record::Activity::kLock);
      tracker_.OnWorkerEvent(pid, seen);
      if (pid == 8 && s % 10 == 0)
        tracker_.OnWorkerEvent(pid, Event(EventKind::kFetch, s * 1'000 * kMs, s * 1'000 * kMs + 1, 16));
    }
  }
  Step(1000, 50);
  const auto rank = Finish();
  const auto stated = json::parse(rank.facts.at("unfinished_fetches"));
  ASSERT_EQ(stated.size(), 1u) << "worker 8 finishes its batches";
  EXPECT_EQ(stated[0]["pid"], 7);
  EXPECT_EQ(stated[0]["line"], 31);
  EXPECT_EQ(stated[0]["activity"], "lock");
  EXPECT_EQ(stated[0]["samples"], 60);
  EXPECT_EQ(stated[0]["seen_ns"].get<int64_t>() - stated[0]["begin_ns"].get<int64_t>(), 59'000 * kMs);
}

TEST_F(RankTrackerTest, AWorkerDoesNotGoOnWithTheFetchOfOneThatHadItsNumber) {
  const auto seen = [&](int64_t s) {
    tracker_.OnWorkerEvent(7, Event(EventKind::kLine, s * 1'000 * kMs, s * 1'000 * kMs, 1));
  };
  const json line = {{"k", "line"}, {"id", 1}, {"file", "/x/train.py"}, {"line", 31}, {"function", "load"}};
  tracker_.OnWorkerLine(7, line);
  seen(1);
  tracker_.OnWorkerLine(7, {{"k", "hello"}, {"role", "worker"}});
  tracker_.OnWorkerLine(7, line);
  seen(100);
  Step(1000, 50);
  EXPECT_FALSE(Finish().facts.contains("unfinished_fetches"));
}

TEST_F(RankTrackerTest, OrdersThatASamplerDrewAreSummedWithoutTheFirst) {
  for (const char* ns : {"900000000", "1000000000", "1100000000"})
    tracker_.OnLine(json::parse(std::string(R"({"k": "draw", "id": 0, "ns": )") + ns + "}"));
  Step(1000, 50);
  const auto rank = Finish();
  EXPECT_EQ(rank.loaders.at(0).draws, 2);
  EXPECT_EQ(rank.loaders.at(0).draw_ns, 2'100 * kMs);
}

TEST_F(RankTrackerTest, LinesInWhichWorkersFetchBelongToTheirLoader) {
  for (const int64_t pid : {7, 8}) {  // the same line has another number in each worker
    tracker_.OnWorkerLine(pid, {{"k", "line"},
                                {"id", pid},
                                {"file", "/x/train.py"},
                                {"line", 31},
                                {"function", "load"},
                                {"library", "h5py"}});
    ChannelRecord seen = Event(EventKind::kLine, 100, 100, pid);
    seen.c = static_cast<int64_t>(record::Activity::kNetwork);
    for (int i = 0; i < 3; ++i) tracker_.OnWorkerEvent(pid, seen);
  }
  tracker_.OnWorkerEvent(7, Event(EventKind::kLine, 100, 100, 99));  // a line that nobody introduced
  Step(1000, 50);
  const auto rank = Finish();
  const std::vector<record::HotLine>& lines = rank.loaders.at(0).lines;
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].line, 31);
  EXPECT_EQ(lines[0].samples, 6);
  EXPECT_EQ(lines[0].library, "h5py");
  EXPECT_EQ(lines[0].activity, record::Activity::kNetwork);
  EXPECT_TRUE(rank.hot_lines.empty()) << "those are the training thread's";
}

TEST_F(RankTrackerTest, StepsKeepTheSizeOfTheirBatches) {
  ChannelRecord next = Event(EventKind::kNext, 1'000 * kMs, 1'001 * kMs, 16);
  next.d = 16 * 900;
  tracker_.OnTrainerEvent(next);
  tracker_.OnTrainerEvent(Event(EventKind::kForward, 1'001 * kMs, 1'002 * kMs, 1));
  tracker_.OnTrainerEvent(Event(EventKind::kOptimizer, 1'002 * kMs, 1'003 * kMs, 1));
  EXPECT_EQ(Finish().steps.at(0).elements, 16 * 900);
}

TEST_F(RankTrackerTest, StagesOfAFullboreLoaderBecomeSeriesOfItsRank) {
  tracker_.OnLine(
      json::parse(R"({"k": "loader", "id": 1, "library": "fullbore.data", "dataset": "ImageFolder",
                                  "args": {"batch_size": 16, "threads": 2, "map_processes": 0}})"));
  for (const int64_t t : {1, 2}) {
    json line = {
        {"k", "loader_stages"}, {"id", 1}, {"t", t * 1000 * kMs}, {"consumer_wait_ns", t * 500 * kMs}};
    line["stages"] = json::array({{{"name", "decode"}, {"threads", 2}, {"busy_ns", t * 1500 * kMs}}});
    tracker_.OnLine(line);
  }
  tracker_.SetRank(3);
  Step(1000, 50);
  const auto rank = Finish();
  EXPECT_EQ(rank.loaders.back().library, record::kFullboreData);
  EXPECT_EQ(rank.loaders.back().threads, 2);
  EXPECT_EQ(rank.loaders.back().map_processes, 0);
  const auto run = record::ReadRun(path_);
  ASSERT_TRUE(run.ok());
  const auto busy = std::ranges::find_if(run->stages.at(0).series,
                                         [](const auto& series) { return series.key.name == "loader_busy"; });
  ASSERT_NE(busy, run->stages.at(0).series.end());
  EXPECT_EQ(busy->key.labels, (record::Labels{{"loader", "1"}, {"rank", "3"}, {"stage", "decode"}}));
  EXPECT_NEAR(busy->readings.at(0).value, 1.5, 1e-9);
}

TEST_F(RankTrackerTest, ASourceLineIsKeptWithoutItsSecret) {
  const std::string script = directory_.Write("train.py", "import x\nfetch(path, password='X', n=1)\n");
  tracker_.OnLine(json{{"k", "line"}, {"id", 7}, {"file", script}, {"line", 2}, {"function", "main"}});
  for (int64_t i = 0; i < 5; ++i) {
    const int64_t inside = (1010 + i * 50) * kMs;
    tracker_.OnTrainerEvent(Event(EventKind::kLine, inside, inside, 7));
    Step(1000 + i * 50, 50);
  }
  const auto rank = Finish();
  ASSERT_FALSE(rank.hot_lines.empty());
  EXPECT_EQ(rank.hot_lines[0].text, "fetch(path, password='***', n=1)");
}

TEST_F(RankTrackerTest, ASourceLineOfANotebookIsWhatTheHookSaysItIs) {
  tracker_.OnLine(
      json{{"k", "line"}, {"id", 7}, {"file", "<cell 4>"}, {"line", 2}, {"text", "  fetch(password='X')\n"}});
  for (int64_t i = 0; i < 5; ++i) {
    const int64_t inside = (1010 + i * 50) * kMs;
    tracker_.OnTrainerEvent(Event(EventKind::kLine, inside, inside, 7));
    Step(1000 + i * 50, 50);
  }
  const auto rank = Finish();
  ASSERT_FALSE(rank.hot_lines.empty());
  EXPECT_EQ(rank.hot_lines[0].text, "fetch(password='***')");
}

TEST_F(RankTrackerTest, ASourceLineOfAScriptFromAPipeIsNotWaitedFor) {
  const std::string pipe = directory_ / "train.py";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  tracker_.OnLine(json{{"k", "line"}, {"id", 7}, {"file", pipe}, {"line", 2}, {"function", "main"}});
  for (int64_t i = 0; i < 5; ++i) {
    const int64_t inside = (1010 + i * 50) * kMs;
    tracker_.OnTrainerEvent(Event(EventKind::kLine, inside, inside, 7));
    Step(1000 + i * 50, 50);
  }
  const auto rank = Finish();
  ASSERT_FALSE(rank.hot_lines.empty());
  EXPECT_EQ(rank.hot_lines[0].text, "");
  EXPECT_EQ(rank.hot_lines[0].function, "main");
}

TEST_F(RankTrackerTest, AMessageIsReportedOnce) {
  for (int i = 0; i < 3; ++i)
    tracker_.OnLine(json::parse(R"({"k": "message", "severity": "warning", "text": "off"})"));
  EXPECT_EQ(tracker_.TakeMessages().size(), 1u);
}

TEST_F(RankTrackerTest, LinesWithOddContentsDoNotCrash) {
  for (const char* line :
       {R"({})", R"({"k": 5})", R"({"k": "loader"})", R"({"k": "loader", "args": 7, "id": "x"})",
        R"({"k": "line", "id": 1, "file": 3})", R"({"k": "fact", "key": "a"})"}) {
    tracker_.OnLine(json::parse(line));
  }
  Step(1000, 50);
  Finish();
}

}  // namespace
}  // namespace fullbore::collect
