#include "explain/ingest/ingest.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <regex>

#include "base/testing/scratch_directory.h"
#include "explain/ingest/testing/trace_builder.h"
#include "explain/ingest/trace_files.h"

namespace fullbore::ingest {
namespace {

using testing::TraceBuilder;

std::string Texts(const record::Stage& stage) {
  std::string all;
  for (const record::Message& message : stage.messages) all += message.text + "\n";
  return all;
}

TraceBuilder RankBuilder(int rank, double shift_us = 0, double late_us = 0) {
  TraceBuilder trace;
  if (rank >= 0)
    trace.Property("\"distributedInfo\": {\"rank\": " + std::to_string(rank) + ", \"world_size\": 2}");
  for (int i = 0; i < 4; ++i) {
    const double t = 1e9 + shift_us + i * 1000;
    trace.Step(i, t, 990).Launched("volta_sgemm", t + 10, t + 20, 300 + late_us);
    // The collective ends everywhere at the same time; who comes late spends less time in it.
    trace.Launched("ncclDevKernel_AllReduce_Sum_f32_RING_LL", t + 30, t + 320 + late_us, 500 - late_us);
  }
  return trace;
}

std::string RankTrace(int rank, double shift_us = 0, double late_us = 0) {
  return RankBuilder(rank, shift_us, late_us).Json();
}

// The events of several ranks in one file, as scripts merge them: `label` stands before each process and thread.
std::string Merged(const std::vector<std::pair<std::string, TraceBuilder>>& ranks) {
  std::string events;
  for (const auto& [label, trace] : ranks) {
    std::string of_rank = trace.BareArray();
    of_rank = of_rank.substr(of_rank.find('[') + 1);
    of_rank.resize(of_rank.rfind(']'));
    of_rank = std::regex_replace(of_rank, std::regex(R"re("(pid|tid)": "?([0-9]+)"?)re"),
                                 "\"$1\": \"" + label + "$2\"");
    events += (events.empty() ? "" : ",") + of_rank;
  }
  return R"({"distributedInfo": {"rank": 0, "world_size": 2}, "deviceProperties": [{"id": 0, "name": "A100"}],)"
         R"( "traceEvents": [)" +
         events + "]}";
}

TEST(ReadTracesTest, OneFileIsOneRank) {
  const ScratchDirectory dir;
  auto recording = ReadTraces({dir.Write("a.json", RankTrace(-1))});
  ASSERT_TRUE(recording.ok()) << ToString(recording.error());
  EXPECT_EQ(recording->source, "kineto");
  ASSERT_EQ(recording->stages.size(), 1U);
  ASSERT_EQ(recording->stages[0].ranks.size(), 1U);
  EXPECT_EQ(recording->stages[0].ranks[0].steps.size(), 4U);
  EXPECT_FALSE(recording->stages[0].ranks[0].comm_wait_ns.has_value());
  EXPECT_LT(recording->stages[0].begin_ns, recording->stages[0].end_ns);
}

TEST(ReadTracesTest, WhoWaitsForTheLateRankIsTold) {
  const ScratchDirectory dir;
  const std::string a = dir.Write("a.json", RankTrace(0));
  const std::string b = dir.Write("b.json", RankTrace(1, 0, 200));
  auto recording = ReadTraces({b, a});
  ASSERT_TRUE(recording.ok());
  const auto& ranks = recording->stages[0].ranks;
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].rank, 0);
  EXPECT_EQ(ranks[0].comm_wait_ns, 4 * 200'000);
  EXPECT_EQ(ranks[1].comm_wait_ns, 0);
  EXPECT_EQ(ranks[0].steps[2].comm_wait_ns, 200'000);
  EXPECT_EQ(ranks[0].tables->collectives[0].wait_ns, 4 * 200'000);
}

TEST(ReadTracesTest, ClocksThatDifferAreAlignedAtTheCollectives) {
  const ScratchDirectory dir;
  const std::string a = dir.Write("a.json", RankTrace(0));
  const std::string b = dir.Write("b.json", RankTrace(1, 5e6, 200));
  auto recording = ReadTraces({a, b});
  ASSERT_TRUE(recording.ok());
  const auto& stage = recording->stages[0];
  EXPECT_EQ(stage.ranks[0].comm_wait_ns, 4 * 200'000);
  EXPECT_EQ(stage.ranks[0].steps[0].end_ns, stage.ranks[1].steps[0].end_ns);
  EXPECT_LT(stage.end_ns - stage.begin_ns, 10'000'000);
  EXPECT_THAT(Texts(stage), ::testing::HasSubstr("clock differs by 5"));
}

TEST(ReadTracesTest, RanksComeFromNamesAndThatIsSaid) {
  const ScratchDirectory dir;
  dir.Write("worker3_step_12.1694128201557.pt.trace.json", RankTrace(-1));
  dir.Write("worker0_step_12.1694128201545.pt.trace.json", RankTrace(-1));
  auto recording = ReadTraces({dir.path()});
  ASSERT_TRUE(recording.ok());
  EXPECT_EQ(recording->stages[0].ranks[1].rank, 3);
  EXPECT_THAT(Texts(recording->stages[0]), ::testing::HasSubstr("from the name of the file"));
}

TEST(ReadTracesTest, RanksInOrderAreSaidAsWell) {
  const ScratchDirectory dir;
  auto recording = ReadTraces({dir.Write("x.json", RankTrace(-1)), dir.Write("y.json", RankTrace(-1))});
  ASSERT_TRUE(recording.ok());
  EXPECT_EQ(recording->stages[0].ranks[1].rank, 1);
  EXPECT_THAT(Texts(recording->stages[0]), ::testing::HasSubstr("from their order"));
}

TEST(ReadTracesTest, OfTwoFilesOfOneRankTheFirstIsJudged) {
  const ScratchDirectory dir;
  auto recording = ReadTraces({dir.Write("x.json", RankTrace(1)), dir.Write("y.json", RankTrace(1))});
  ASSERT_TRUE(recording.ok());
  EXPECT_EQ(recording->stages[0].ranks.size(), 1U);
  EXPECT_THAT(Texts(recording->stages[0]), ::testing::HasSubstr("only the first is judged"));
}

TEST(ReadTracesTest, RanksMergedIntoOneFileAreToldApart) {
  const ScratchDirectory dir;
  const std::string file = dir.Write(
      "merged.json", Merged({{"[Rank 0] ", RankBuilder(-1)}, {"[Rank 1] ", RankBuilder(-1, 0, 200)}}));
  auto recording = ReadTraces({file});
  ASSERT_TRUE(recording.ok()) << ToString(recording.error());
  const auto& ranks = recording->stages[0].ranks;
  ASSERT_EQ(ranks.size(), 2U);
  for (const record::RankInfo& rank : ranks) {
    EXPECT_EQ(rank.steps.size(), 4U);
    EXPECT_EQ(rank.kernels, 8);
    EXPECT_EQ(rank.pid, 4242);
    EXPECT_EQ(rank.facts.at("gpu"), "\"A100\"");
  }
  EXPECT_EQ(ranks[0].comm_wait_ns, 4 * 200'000);
  EXPECT_EQ(ranks[1].comm_wait_ns, 0);
  EXPECT_THAT(Texts(recording->stages[0]), ::testing::HasSubstr("2 ranks"));
}

TEST(ReadTracesTest, LabelsUponLabelsAreNoFurtherRanks) {
  const ScratchDirectory dir;
  std::string labels;
  for (int i = 0; i < 100'000; ++i) labels += "[1]";
  TraceBuilder one;
  one.Step(0, 1e9, 990).Launched("volta_sgemm", 1e9 + 10, 1e9 + 20, 300);
  auto recording = ReadTraces({dir.Write("merged.json", Merged({{labels, one}}))});
  ASSERT_TRUE(recording.ok());
  EXPECT_EQ(recording->stages[0].ranks.size(), 1U);
}

TEST(ReadTracesTest, RecordingsOfOneProcessAreStretchesOfOneRank) {
  const ScratchDirectory dir;
  const double minute = 60e6;
  for (const int rank : {-1, 0}) {
    const std::string later = dir.Write("logs/gpu01.local_4242.200.pt.trace.json", RankTrace(rank, minute));
    const std::string first = dir.Write("logs/gpu01.local_4242.100.pt.trace.json", RankTrace(rank));
    auto recording = ReadTraces({later, first});
    ASSERT_TRUE(recording.ok());
    ASSERT_EQ(recording->stages[0].ranks.size(), 1U);
    const record::RankInfo& info = recording->stages[0].ranks[0];
    ASSERT_EQ(info.steps.size(), 8U);
    EXPECT_EQ(info.steps[4].index, 4);
    EXPECT_EQ(info.steps[4].wall_ns, info.steps[0].wall_ns) << "the minute between them belongs to no step";
    EXPECT_EQ(info.kernels, 16);
    EXPECT_LT(*info.span_ns, 10'000'000);
    EXPECT_EQ(info.tables->kernels[0].count, 8);
    EXPECT_EQ(info.noticed.stretches, 2);
    EXPECT_THAT(Texts(recording->stages[0]), ::testing::HasSubstr("one after the other"));
    EXPECT_THAT(Texts(recording->stages[0]), ::testing::Not(::testing::HasSubstr("left out")));
  }
}

TEST(ReadTracesTest, ProcessesOfOneNumberOnTwoHostsAreTwoRanks) {
  const ScratchDirectory dir;
  const std::string here = dir.Write("gpu01_4242.100.pt.trace.json", RankTrace(-1));
  const std::string there = dir.Write("gpu02_4242.200.pt.trace.json", RankTrace(-1, 60e6));
  auto recording = ReadTraces({here, there});
  ASSERT_TRUE(recording.ok());
  EXPECT_EQ(recording->stages[0].ranks.size(), 2U);
}

TEST(ReadTracesTest, ForeignFilesOfADirectoryAreCounted) {
  const ScratchDirectory dir;
  dir.Write("a.json.gz", testing::Gzip(RankTrace(0)));
  dir.Write("b.json.zst", testing::Zstd(RankTrace(1)));
  dir.Write("notes.txt", "hello");
  dir.Write("empty", "");
  dir.Write("config.json", "{\"batch_size\": 12}");
  auto recording = ReadTraces({dir.path()});
  ASSERT_TRUE(recording.ok()) << ToString(recording.error());
  EXPECT_EQ(recording->stages[0].ranks.size(), 2U);
  EXPECT_THAT(Texts(recording->stages[0]), ::testing::HasSubstr("2 files that are not traces"));
  EXPECT_THAT(Texts(recording->stages[0]), ::testing::HasSubstr("config.json"));
}

TEST(ReadTracesTest, HoweverATraceIsPackedItIsTheSame) {
  const ScratchDirectory dir;
  const std::string json = RankTrace(-1);
  const auto steps = [&](const std::string& name, const std::string& bytes) {
    const auto recording = ReadTraces({dir.Write(name, bytes)});
    if (!recording) return ToString(recording.error());
    return std::to_string(recording->stages[0].ranks.at(0).steps.size());
  };
  EXPECT_EQ(steps("a.json", json), "4");
  EXPECT_EQ(steps("a.json.xz", testing::Xz(json)), "4");
  EXPECT_EQ(steps("a.json.bz2", testing::Bzip2(json)), "4");
  EXPECT_EQ(steps("a.zip", testing::Zip({{"a.json", json}})), "4");
  EXPECT_EQ(steps("b.zip", testing::Zip({{"a.json.gz", testing::Gzip(json)}})), "4");
  EXPECT_EQ(steps("from windows.json", "\xef\xbb\xbf" + json), "4");
  EXPECT_EQ(steps("from windows.json.gz", testing::Gzip("\xef\xbb\xbf" + json)), "4");
}

TEST(ReadTracesTest, AnArchiveHoldsTheRanksOfOneRun) {
  const ScratchDirectory dir;
  const std::string path = dir.Write("two.zip", testing::Zip({{"a.json", RankTrace(0)},
                                                              {"__MACOSX/._a.json", "\x05\x16"},
                                                              {"b.json.xz", testing::Xz(RankTrace(1))}}));
  const auto recording = ReadTraces({path});
  ASSERT_TRUE(recording.ok()) << ToString(recording.error());
  EXPECT_EQ(recording->stages[0].ranks.size(), 2U);
  EXPECT_EQ(Texts(recording->stages[0]), "");
}

TEST(ReadTracesTest, WhatIsPackedAloneInAnArchiveIsCalledByName) {
  const ScratchDirectory dir;
  const auto told = [&](const std::string& name, const std::string& bytes) {
    return ReadTraces({dir.Write("x.zip", testing::Zip({{name, bytes}}))}).error().text;
  };
  EXPECT_THAT(told("t.json.gz", testing::Gzip("<!doctype html>")),
              ::testing::HasSubstr("t.json.gz' is a web page"));
  EXPECT_THAT(told("t.sqlite", "SQLite format 3"), ::testing::HasSubstr("cannot be read in an archive"));
  EXPECT_THAT(told("notes", "hello"), ::testing::HasSubstr("notes' is not a PyTorch-profiler trace"));
}

TEST(ReadTracesTest, ACheckpointBesideTracesIsNotOne) {
  const ScratchDirectory dir;
  dir.Write("a.json", RankTrace(0));
  dir.Write("model.pt", testing::Zip({{"archive/data.pkl", "x"}}));
  const auto recording = ReadTraces({dir.path()});
  ASSERT_TRUE(recording.ok());
  EXPECT_EQ(Texts(recording->stages[0]),
            "left out: 1 files that are not traces, '" + dir.path() + "/model.pt' the first\n");
}

constexpr char kLogs[] = "logs/resnet/plugins/profile/";

TEST(ReadTracesTest, ADirectoryOfLogsIsSearched) {
  const ScratchDirectory dir;
  dir.Write(std::string(kLogs) + "2026_11_21_09_15_00/host.pt.trace.json.gz", testing::Gzip(RankTrace(0)));
  dir.Write("logs/hparams.json", "{\"batch_size\": 12}");
  dir.Write("logs/mlflow.db", "SQLite format 3");
  for (const char* named : {"", "/logs", "/logs/resnet/"}) {
    auto recording = ReadTraces({dir.path() + named});
    ASSERT_TRUE(recording.ok()) << named << ToString(recording.error());
    EXPECT_EQ(recording->stages[0].ranks.size(), 1U);
    EXPECT_THAT(Texts(recording->stages[0]), ::testing::HasSubstr("2026_11_21_09_15_00'"));
    EXPECT_FALSE(recording->id.empty());
  }
}

TEST(ReadTracesTest, OfSeveralRecordingsTheNewestIsTakenAndSaid) {
  const ScratchDirectory dir;
  const auto written = [&](const std::string& date, int steps) {
    TraceBuilder trace;
    for (int i = 0; i < steps; ++i)
      trace.Step(i, 1e9 + i * 1000, 990).Launched("sgemm", 1e9 + i * 1000, 1e9 + i * 1000 + 10, 300);
    return dir.Write(kLogs + date + "/host.pt.trace.json", trace.Json());
  };
  const std::string monday = written("2026_11_16", 3), tuesday = written("2026_11_17", 5);
  const auto steps_taken = [&] {
    auto recording = ReadTraces({dir.path()});
    EXPECT_TRUE(recording.ok());
    EXPECT_EQ(recording->stages[0].ranks.size(), 1U);
    EXPECT_THAT(Texts(recording->stages[0]),
                ::testing::HasSubstr("holds traces in 2 directories: the newest"));
    return recording->stages[0].ranks[0].steps.size();
  };
  const auto now = std::filesystem::last_write_time(monday);
  std::filesystem::last_write_time(tuesday, now - std::chrono::hours(1));
  EXPECT_EQ(steps_taken(), 3U);
  std::filesystem::last_write_time(tuesday, now);  // as after a copy: then their names tell
  EXPECT_EQ(steps_taken(), 5U);
}

TEST(ReadTracesTest, DirectoriesNamedAfterRanksAreOneRecording) {
  const ScratchDirectory dir;
  for (const char* rank : {"0", "1", "2"})
    dir.Write(std::string("run/rank") + rank + "/trace.json", RankTrace(-1));
  auto recording = ReadTraces({dir.path()});
  ASSERT_TRUE(recording.ok());
  ASSERT_EQ(recording->stages[0].ranks.size(), 3U);
  EXPECT_EQ(recording->stages[0].ranks[2].rank, 2);
  EXPECT_THAT(Texts(recording->stages[0]), ::testing::HasSubstr("3 directories named after ranks"));
}

TEST(ReadTracesTest, LinksInCirclesAndEndlessDepthsAreHarmless) {
  const ScratchDirectory dir;
  std::string deep = "runs";
  for (int level = 0; level < 20; ++level) deep += "/deeper";
  dir.Write(deep + "/far.json", RankTrace(0));
  std::filesystem::create_directory_symlink(dir.path(), dir.path() + "/runs/circle");
  auto none = ReadTraces({dir.path()});
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(ToString(none.error()), ::testing::HasSubstr("8 levels"));
  dir.Write("runs/deeper/near.json", RankTrace(0));
  EXPECT_TRUE(ReadTraces({dir.path()}).ok());
}

TEST(ReadTracesTest, ErrorsNameTheFile) {
  const ScratchDirectory dir;
  const auto text_of = [](const std::string& path) {
    auto recording = ReadTraces({path});
    EXPECT_FALSE(recording.ok()) << path;
    return recording.ok() ? std::string() : ToString(recording.error());
  };
  EXPECT_THAT(text_of(dir.path() + "/missing.json"), ::testing::HasSubstr("missing.json"));
  EXPECT_THAT(text_of(dir.Write("text.json", "not a trace")), ::testing::HasSubstr("text.json"));
  EXPECT_THAT(text_of(dir.Write("half.sqlite", "SQLite format 3")), ::testing::HasSubstr("half.sqlite"));
  EXPECT_THAT(text_of(dir.Write("cut.gz", testing::Gzip(RankTrace(0)).substr(0, 12))),
              ::testing::HasSubstr("cut.gz"));
  std::filesystem::create_directory(dir.path() + "/none");
  EXPECT_THAT(text_of(dir.path() + "/none"), ::testing::HasSubstr("no trace found"));
}

TEST(ReadTracesTest, WhatBreaksOffIsReadAndSaid) {
  const ScratchDirectory dir;
  const std::string text = RankTrace(0);
  auto recording = ReadTraces({dir.Write("a.json", text.substr(0, text.size() / 2))});
  ASSERT_TRUE(recording.ok());
  EXPECT_THAT(Texts(recording->stages[0]), ::testing::HasSubstr("breaks off"));
}

TEST(ReadTracesTest, ATraceOfTheHostAloneHasTheSharesOfItsThread) {
  const ScratchDirectory dir;
  TraceBuilder trace;
  for (int i = 0; i < 3; ++i) {
    const double t = 1e9 + i * 10'000;
    trace.Step(i, t, 9'990).Loader(t + 10, 4'000).Op("aten::conv2d", t + 4'020, 2'000);
    trace.Op("autograd::engine::evaluate_function: ConvolutionBackward0", t + 6'030, 2'000);
    trace.Annotation("Optimizer.step#SGD.step", t + 8'040, 500);
  }
  auto recording = ReadTraces({dir.Write("cpu.json", trace.Json())});
  ASSERT_TRUE(recording.ok());
  const record::RankInfo& rank = recording->stages[0].ranks[0];
  EXPECT_FALSE(rank.device_activity);
  EXPECT_FALSE(rank.busy_ns.has_value());
  ASSERT_EQ(rank.steps.size(), 3U);
  const record::ShareTimes& shares = rank.steps[1].share_ns;
  EXPECT_NEAR(static_cast<double>(shares[Index(record::Share::kDataWait)]), 4e6, 5e4);
  EXPECT_NEAR(static_cast<double>(shares[Index(record::Share::kForward)]), 2e6, 5e4);
  EXPECT_NEAR(static_cast<double>(shares[Index(record::Share::kBackward)]), 2e6, 5e4);
  EXPECT_NEAR(static_cast<double>(shares[Index(record::Share::kOptimizer)]), 5e5, 5e4);
}

// A prefill of 2 ms and three decodes of 1 ms on the device, which the host launches ahead of it.
TraceBuilder Served(const std::string& category) {
  TraceBuilder trace;
  const auto iteration = [&](const std::string& name, double host, double device, double ms) {
    trace.Raw(R"({"ph":"X","cat":")" + category + R"(","name":")" + name + R"(","pid":4242,"tid":100,"ts":)" +
              std::to_string(category == "user_annotation" ? host : device) + R"(,"dur":)" +
              std::to_string(category == "user_annotation" ? 90 : ms * 1000) + R"(,"args":{}})");
    trace.Launched("nvjet_tst_128x256", host + 10, device, ms * 1000);
  };
  iteration("step[EXTEND bs=2 toks=4096]", 1000, 1100, 2);
  iteration("step[DECODE bs=16]", 1100, 3100, 1);
  iteration("step[DECODE bs=16]", 1200, 4100, 1);
  iteration("step[DECODE bs=16]", 1300, 5100, 1);
  return trace;
}

TEST(ReadTracesTest, IterationsOfAServingEngineAreToldApart) {
  for (const char* category : {"user_annotation", "gpu_user_annotation"}) {
    const ScratchDirectory dir;
    auto recording = ReadTraces({dir.Write("a.json", Served(category).Json())});
    ASSERT_TRUE(recording.ok()) << ToString(recording.error());
    const record::RankInfo& rank = recording->stages[0].ranks[0];
    EXPECT_EQ(rank.noticed.engine, "SGLang") << category;
    EXPECT_EQ(rank.steps.size(), 4U) << category;
    ASSERT_EQ(rank.noticed.served.size(), 2U) << category;
    const record::ServedPhase& prefill = rank.noticed.served[0];
    const record::ServedPhase& decode = rank.noticed.served[1];
    EXPECT_EQ(prefill.iterations, 1) << category;
    EXPECT_EQ(prefill.tokens, 4096) << category;
    EXPECT_NEAR(static_cast<double>(prefill.ns), 2e6, 0.2e6) << category;
    EXPECT_EQ(decode.iterations, 3) << category;
    EXPECT_EQ(decode.tokens, 48) << category;
    EXPECT_NEAR(static_cast<double>(decode.ns), 3e6, 0.2e6) << category;
  }
}

TEST(ReadTracesTest, ATrainingThatGeneratesSamplesIsATraining) {
  const ScratchDirectory dir;
  TraceBuilder trace = Served("user_annotation");
  trace.Annotation("Optimizer.step#AdamW.step", 6200, 100).Launched("adam", 6210, 6250, 100);
  trace.Annotation("Optimizer.step#AdamW.step", 7200, 100).Launched("adam", 7210, 7250, 100);
  auto recording = ReadTraces({dir.Write("a.json", trace.Json())});
  ASSERT_TRUE(recording.ok());
  const record::RankInfo& rank = recording->stages[0].ranks[0];
  EXPECT_EQ(rank.noticed.engine, "");
  EXPECT_EQ(rank.facts.at("optimizer"), "\"AdamW\"");
}

TEST(ReadTracesTest, WhatTheDeviceTakesIsToldByItsNameOrItsKernels) {
  const auto units = [](const std::string& device, const std::string& kernel) {
    const ScratchDirectory dir;
    TraceBuilder trace;
    if (!device.empty()) trace.Property(R"("deviceProperties": [{"id": 0, "name": ")" + device + "\"}]");
    for (int i = 0; i < 3; ++i)
      trace.Step(i, 1000 + 100 * i, 99).Launched(kernel, 1010 + 100 * i, 1020 + 100 * i, 50);
    auto recording = ReadTraces({dir.Write("a.json", trace.Json())});
    EXPECT_TRUE(recording.ok());
    return recording->stages[0].ranks[0].graph->matrix_units;
  };
  EXPECT_EQ(units("Tesla P100-PCIE-16GB", "volta_sgemm_128x128_nn"), record::MatrixUnits::kNone);
  EXPECT_EQ(units("", "volta_sgemm_128x128_nn"), record::MatrixUnits::kFloat16);
  EXPECT_EQ(units("", "some_gemm"), record::MatrixUnits::kUnknown);
}

TEST(ReadTracesTest, CopiesAndLaunchesOfIntelDevicesAreOfTheirKind) {
  const ScratchDirectory dir;
  TraceBuilder trace;
  for (int i = 0; i < 3; ++i) {
    const double t = 1000 + 1000 * i;
    trace.Step(i, t, 990);
    trace.Raw(R"({"ph":"X","cat":"xpu_runtime","name":"urEnqueueUSMMemcpy","pid":4242,"tid":100,"ts":)" +
              std::to_string(t + 10) + R"(,"dur":300,"args":{"correlation":)" + std::to_string(10 + i) +
              "}}");
    trace.Copy("Memcpy M2D", t + 20, 280, 10 + i, 1 << 20);
    trace.Raw(R"({"ph":"X","cat":"xpu_runtime","name":"urEnqueueKernelLaunch","pid":4242,"tid":100,"ts":)" +
              std::to_string(t + 320) + R"(,"dur":5,"args":{"correlation":)" + std::to_string(20 + i) + "}}");
    trace.Kernel("gemm_kernel", t + 330, 400, 20 + i);
  }
  auto recording = ReadTraces({dir.Write("a.json", trace.Json())});
  ASSERT_TRUE(recording.ok());
  const record::RankInfo& rank = recording->stages[0].ranks[0];
  ASSERT_EQ(rank.tables->copies.size(), 1U);
  EXPECT_EQ(rank.tables->copies[0].kind, "copy_h2d_pageable");
  ASSERT_TRUE(rank.tables->launches.has_value());
  EXPECT_EQ(rank.tables->launches->count, 3);
}

TEST(ReadTracesTest, NothingButFlowsAndMetadataIsAnEmptyReport) {
  const ScratchDirectory dir;
  auto recording = ReadTraces({dir.Write("a.json", R"([{"ph": "M", "name": "process_name"}])")});
  ASSERT_TRUE(recording.ok());
  EXPECT_TRUE(recording->stages[0].ranks[0].steps.empty());
}

TEST(ReadTracesTest, TheFilesInsideATarFileAreTheRanks) {
  const ScratchDirectory dir;
  const std::string tar = testing::TarMember("traces/", "", '5') +
                          testing::TarMember("traces/a.json", RankTrace(0)) +
                          testing::TarMember("traces/readme.txt", "hello") +
                          testing::TarMember("traces/b.json", RankTrace(1)) + std::string(1024, '\0');
  for (const bool packed : {false, true}) {
    auto recording = ReadTraces({dir.Write("t.tar", packed ? testing::Gzip(tar) : tar)});
    ASSERT_TRUE(recording.ok()) << ToString(recording.error());
    EXPECT_EQ(recording->stages[0].ranks.size(), 2U);
    EXPECT_THAT(Texts(recording->stages[0]), ::testing::HasSubstr("readme.txt"));
  }
  for (size_t length = 600; length < tar.size(); length += 1000) {
    auto recording = ReadTraces({dir.Write("cut.tar", tar.substr(0, length))});
    if (recording) {
      EXPECT_FALSE(recording->stages[0].ranks.empty());
    } else {
      EXPECT_THAT(recording.error().text, ::testing::HasSubstr("cut.tar"));
    }
  }
}

TEST(VisitTracesTest, HandsOverEveryTraceInFull) {
  const ScratchDirectory dir;
  size_t ops = 0;
  auto messages =
      VisitTraces({dir.Write("a.json", RankTrace(0)), dir.Write("b.json", RankTrace(1))}, {},
                  [&](timeline::DeviceTrace& trace, const std::string&) { ops += trace.ops.size(); });
  ASSERT_TRUE(messages.ok());
  EXPECT_EQ(ops, 16U);
}

TEST(RankInNameTest, WordsThatNameRanks) {
  EXPECT_EQ(RankInName("/x/rank7.json"), 7);
  EXPECT_EQ(RankInName("/rank9/trace_rank-12.json.gz"), 12);
  EXPECT_EQ(RankInName("worker0_step_12.1694128201545.pt.trace.json"), 0);
  EXPECT_EQ(RankInName("host.1234.pt.trace.json"), -1);
  EXPECT_EQ(RankInName("ranking.json"), -1);
}

TEST(KindOfFileTest, ByContentNotByName) {
  const ScratchDirectory dir;
  EXPECT_EQ(KindOfFile(dir.Write("x.fbr", testing::Gzip("{\"traceEvents\": []}"))).value(), FileKind::kJson);
  EXPECT_EQ(KindOfFile(dir.Write("y.json", "hello")).value(), FileKind::kForeign);
  EXPECT_EQ(KindOfFile(dir.path() + "/missing").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace fullbore::ingest
