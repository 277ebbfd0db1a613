#include "report/export/perfetto.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <zlib.h>

#include <nlohmann/json.hpp>
#include <set>

#include "explain/analyze/testing/scene.h"
#include "timeline/device/rank.h"

namespace fullbore::exporting {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;
using ::testing::Not;

// Three steps of 100 us. In each the host works, a copy and two kernels run, the second kernel on a stream of
// its own; times go from 0.
class PerfettoTest : public ::testing::Test {
 protected:
  PerfettoTest() {
    for (int64_t step = 0; step < 3; ++step) {
      const int64_t t = 100 * step;
      scene_.Step(10 + step, t, t + 100).Span("aten::linear", t, t + 40);
      scene_.Op("Memcpy HtoD (Pinned -> Device)", t, t + 6, t + 10).Bytes(100);
      scene_.Op("gemm<\"x\">", t + 10, t + 20, t + 60).Op("ncclKernel_AllReduce", t + 20, t + 50, t + 90, 1);
      scene_.Op("gemm", t + 30, t + 55, t + 70);  // on stream 7 while the one before still runs
    }
    scene_.trace().Finish();
    info_ = timeline::SummariseRank(scene_.trace()).info;
  }

  nlohmann::json Exported(const Window& window, int64_t shift_ns = 0) {
    PerfettoFile file(window);
    file.AddFindings(diagnosis_);
    file.AddRank(scene_.trace(), info_, shift_ns, {10, 11, 12});
    const nlohmann::json json = nlohmann::json::parse(file.Json());
    return json["traceEvents"];
  }

  static std::set<std::string> Tracks(const nlohmann::json& events) {
    std::set<std::string> tracks;
    for (const auto& event : events)
      if (event["name"] == "thread_name") tracks.insert(event["args"]["name"]);
    return tracks;
  }

  static std::vector<std::string> Slices(const nlohmann::json& events, const std::string& track) {
    int tid = -1;
    std::vector<std::string> names;
    for (const auto& event : events) {
      if (event["name"] == "thread_name" && event["args"]["name"] == track) tid = event["tid"];
      if (event["ph"] == "X" && event["tid"] == tid) names.push_back(event["name"]);
    }
    return names;
  }

  // With the steps run again as `graph` has them, from step 1 on: the slices of a track, "name begin duration" in us.
  std::vector<std::string> Replayed(const record::StepGraph& graph, const std::string& track) {
    PerfettoFile file({0, 300'000, 0});
    const record::StepGraph* const ranks[] = {&graph};
    file.AddReplay(scene_.trace(), info_, {10, 11, 12}, ranks, 1, "no-sync");
    const nlohmann::json json = nlohmann::json::parse(file.Json());
    int tid = -1;
    std::vector<std::string> slices;
    for (const auto& event : json["traceEvents"]) {
      if (event["name"] == "process_name") {
        EXPECT_EQ(event["args"]["name"], "rank 0, replayed with no-sync");
      }
      if (event["name"] == "thread_name" && event["args"]["name"] == track) tid = event["tid"];
      if (event["ph"] == "X" && event["tid"] == tid)
        slices.push_back(fmt::format("{} {} {}", event["name"].get<std::string>(), event["ts"].get<double>(),
                                     event["dur"].get<double>()));
    }
    return slices;
  }

  analyze::Scene scene_;
  record::RankInfo info_;
  diagnose::Diagnosis diagnosis_;
};

TEST_F(PerfettoTest, EveryEventLiesInTheWindow) {
  const auto events = Exported({105'000, 155'000, 0});
  int64_t timed = 0;
  for (const auto& event : events) {
    if (!event.contains("ts")) continue;
    ++timed;
    EXPECT_GE(event["ts"].get<double>(), 105.0) << event;
    EXPECT_LE(event["ts"].get<double>() + event.value("dur", 0.0), 155.0 + 1e-9) << event;
  }
  EXPECT_GT(timed, 10);
}

TEST_F(PerfettoTest, HasTracksForTheDeviceTheHostAndFullbore) {
  diagnosis_.findings.push_back({});
  diagnosis_.findings.back().id = "comm-bound";
  EXPECT_THAT(Tracks(Exported({0, 300'000, 0})),
              IsSupersetOf({"finding: comm-bound", "steps", "where the time goes", "critical path",
                            "stream 0/7", "stream 0/20", "thread main"}));
}

TEST_F(PerfettoTest, StepsCarryTheirNumbersAndShares) {
  const auto events = Exported({0, 300'000, 0});
  EXPECT_THAT(Slices(events, "steps"), ::testing::ElementsAre("step 10", "step 11", "step 12"));
  for (const auto& event : events) {
    if (event["name"] != "step 11") continue;
    EXPECT_NEAR(event["args"]["compute %"].get<double>(), 50, 1e-9);
  }
}

TEST_F(PerfettoTest, SharesOfAWindowCoverItWithoutGaps) {
  const auto events = Exported({110'000, 190'000, 0});
  double covered = 0;
  std::set<std::string> names;
  int tid = -1;
  for (const auto& event : events) {
    if (event["name"] == "thread_name" && event["args"]["name"] == "where the time goes") tid = event["tid"];
    if (event["ph"] != "X" || event["tid"] != tid) continue;
    covered += event["dur"].get<double>();
    names.insert(event["name"]);
  }
  EXPECT_NEAR(covered, 80.0, 1e-9);
  EXPECT_THAT(names, IsSupersetOf({"compute", "comm_exposed", "launch"}));
}

TEST_F(PerfettoTest, CutEventsKeepTheirWholeDurationInTheirArguments) {
  for (const auto& event : Exported({130'000, 140'000, 0})) {
    if (event["name"] != "gemm<\"x\">") continue;
    EXPECT_EQ(event["dur"], 10.0);
    EXPECT_EQ(event["args"]["cut at the window, whole duration in us"], 40.0);
  }
}

TEST_F(PerfettoTest, OverlappingOperationsOfAStreamGetATrackOfTheirOwn) {
  const auto events = Exported({0, 300'000, 0});
  EXPECT_THAT(Slices(events, "stream 0/7 (overlapping)"), ::testing::ElementsAre("gemm", "gemm", "gemm"));
  EXPECT_THAT(Slices(events, "stream 0/7"), Not(Contains("gemm")));
}

TEST_F(PerfettoTest, AFindingLiesWhereItsEvidenceDoes) {
  diagnose::Finding finding;
  finding.id = "sync-bound";
  finding.title = "It \"waits\"";
  finding.evidence.push_back({"blocked", 3, "ms", "trace", "", 120'000, 130'000});
  finding.evidence.push_back({"elsewhere", 3, "ms", "trace", "", 250'000, 260'000});
  diagnosis_.findings.push_back(finding);
  EXPECT_THAT(Slices(Exported({100'000, 200'000, 0}), "finding: sync-bound"),
              ::testing::ElementsAre("sync-bound: blocked"));
  EXPECT_THAT(Slices(Exported({0, 100'000, 0}), "finding: sync-bound"),
              ::testing::ElementsAre("It \"waits\""));
}

TEST_F(PerfettoTest, TimesOfARankAreShiftedToTheCommonClock) {
  for (record::Step& step : info_.steps) step.end_ns += 1'000'000;
  for (const auto& event : Exported({1'000'000, 1'300'000, 1'000'000}, 1'000'000)) {
    if (event["name"] != "gemm<\"x\">") continue;
    EXPECT_EQ(event["ts"], 20.0);
    break;
  }
}

TEST_F(PerfettoTest, AReplayWithoutAChangeIsWhatWasRecorded) {
  ASSERT_TRUE(info_.graph);
  EXPECT_THAT(Replayed(*info_.graph, "steps"), IsSupersetOf({"step 11 100 100"}));
  EXPECT_THAT(Replayed(*info_.graph, "stream 0/20"),
              ::testing::ElementsAre("ncclKernel_AllReduce 50 40", "ncclKernel_AllReduce 150 40",
                                     "ncclKernel_AllReduce 250 40"));
}

TEST_F(PerfettoTest, AReplayBeginsWithTheRecordedStepAndGoesOnAsChanged) {
  record::StepGraph graph = *info_.graph;
  for (auto& node : graph.nodes) {
    if (node.work == record::Work::kHost) node.duration_ns += 20'000;
  }
  const auto steps = Replayed(graph, "steps");
  ASSERT_GE(steps.size(), 2U);
  EXPECT_THAT(steps, Contains(::testing::StartsWith("step 11 100 ")));
  EXPECT_THAT(steps, Not(Contains("step 11 100 100")));
}

TEST_F(PerfettoTest, GzipOutputDecompressesToTheSameText) {
  const std::string text(100'000, 'x');
  const std::string packed = Gzip(text, "a comment");
  std::string unpacked(text.size() + 1, '\0');
  z_stream stream{};
  ASSERT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(unpacked.data());
  stream.avail_out = static_cast<uInt>(unpacked.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  EXPECT_EQ(stream.total_out, text.size());
  inflateEnd(&stream);
}

}  // namespace
}  // namespace fullbore::exporting
