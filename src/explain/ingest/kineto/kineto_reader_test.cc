#include "explain/ingest/kineto/kineto_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "explain/ingest/testing/trace_builder.h"
#include "timeline/device/rank.h"

namespace fullbore::ingest::kineto {
namespace {

using testing::TraceBuilder;
using timeline::DeviceTrace;
using timeline::Lane;
using timeline::SpanKind;

DeviceTrace Read(const std::string& text, ReadOptions options = {}) {
  auto trace = ReadKineto(BytesInMemory(text), "t.json", options);
  EXPECT_TRUE(trace.ok()) << ToString(trace.error());
  return trace.ok() ? std::move(*trace) : DeviceTrace{};
}

// What a test of formats compares: everything that the diagnosis sees of a rank.
std::string Summary(const DeviceTrace& trace) {
  const timeline::RankResult result = timeline::SummariseRank(trace);
  std::string text = std::to_string(result.info.busy_ns.value_or(-1)) + " " +
                     std::to_string(result.info.comm_exposed_ns.value_or(-1)) + " " +
                     std::to_string(result.info.kernels.value_or(-1)) + ":";
  for (const record::Step& step : result.info.steps) {
    text += " [" + std::to_string(step.wall_ns);
    for (const int64_t ns : step.share_ns) text += " " + std::to_string(ns);
    text += "]";
  }
  return text;
}

TEST(KinetoReaderTest, KernelsAreTiedToTheCallsThatLaunchedThem) {
  const DeviceTrace trace = Read(TraceBuilder().Launch(10, 5, 77, 3).Kernel("k", 20.5, 30.25, 77).Json());
  ASSERT_EQ(trace.ops.size(), 1U);
  EXPECT_EQ(trace.ops[0].begin_ns, 20'500);
  EXPECT_EQ(trace.ops[0].end_ns, 50'750);
  EXPECT_EQ(trace.ops[0].launch_begin_ns, 10'000);
  EXPECT_EQ(trace.ops[0].launch_end_ns, 15'000);
  EXPECT_EQ(trace.threads[trace.ops[0].launch_thread], "4242/3");
  EXPECT_EQ(trace.streams[trace.ops[0].stream], "0/7");
}

// A node of the backward pass that runs `name` within itself, as one that is to be differentiated or not.
TraceBuilder BackwardPassThatRuns(const std::string& name, const std::string& args) {
  const auto op = [](const std::string& each, double begin, double duration, const std::string& more) {
    return fmt::format(
        R"({{"ph": "X", "cat": "cpu_op", "name": "{}", "pid": 4242, "tid": 101, "ts": {}, "dur": {},)"
        R"( "args": {{"External id": 3{}}}}})",
        each, begin, duration, more);
  };
  constexpr char kNode[] = R"(, "Sequence number": 7, "Fwd thread id": 1)";
  TraceBuilder trace;
  trace.Raw(op("autograd::engine::evaluate_function: AddmmBackward0", 100, 100, kNode));
  trace.Raw(op(name, 110, 30, args)).Launch(115, 5, 1, 101).Kernel("k", 130, 40, 1);
  trace.Raw(op("aten::gelu", 145, 10, args));
  trace.Raw(op("AddmmBackward0", 160, 30, kNode)).Launch(165, 5, 2, 101).Kernel("k", 171, 60, 2);
  return trace;
}
constexpr char kDifferentiated[] = R"(, "Sequence number": 9, "Fwd thread id": 0)";

TEST(KinetoReaderTest, AForwardPassWithinTheBackwardPassIsARecomputation) {
  const DeviceTrace trace = Read(BackwardPassThatRuns("aten::linear", kDifferentiated).Json());
  ASSERT_EQ(trace.recomputations.size(), 1U);
  EXPECT_EQ(trace.recomputations[0].begin_ns, 110'000);
  EXPECT_EQ(trace.recomputations[0].end_ns, 155'000) << "not what the node itself computes";
  EXPECT_EQ(trace.noticed.recomputed_ns, 40'000);
  EXPECT_EQ(trace.noticed.computed_ns, 100'000);
}

TEST(KinetoReaderTest, ASecondDerivativeAndABackwardPassAreNone) {
  EXPECT_TRUE(Read(BackwardPassThatRuns("aten::mm", kDifferentiated).Json()).recomputations.empty());
  EXPECT_TRUE(Read(BackwardPassThatRuns("aten::linear", "").Json()).recomputations.empty());
}

TEST(KinetoReaderTest, ACallThatKinetoHasNoNameForIsALaunchIfItLaunchedAKernel) {
  const DeviceTrace trace = Read(
      TraceBuilder().Call("INVALID", 10, 5, 77).Kernel("k", 20, 30, 77).Call("INVALID", 60, 5, 78).Json());
  ASSERT_EQ(trace.ops.size(), 1U);
  EXPECT_EQ(trace.ops[0].launch_begin_ns, 10'000);
  ASSERT_EQ(trace.calls.size(), 2U);
  EXPECT_EQ(trace.calls[0].kind, timeline::CallKind::kLaunch);
  EXPECT_EQ(trace.calls[1].kind, timeline::CallKind::kOther);
}

// As newer versions write them, with enable_cuda_sync_events.
TEST(KinetoReaderTest, WhatAStreamAndACallWaitForIsReadWhereItIsRecorded) {
  const auto sync = [](const std::string& name, const std::string& args) {
    return R"({"ph":"X","cat":"cuda_sync","name":")" + name +
           R"(","pid":0,"tid":20,"ts":15,"dur":1,"args":{)" + args + "}}";
  };
  const DeviceTrace trace = Read(
      TraceBuilder()
          .Raw(R"({"ph":"X","cat":"cuda_runtime","name":"cudaEventRecord","pid":1,"tid":1,"ts":14,"dur":1,)"
               R"("args":{"correlation":4}})")
          .Raw(sync("Stream Wait Event",
                    R"("stream":20,"correlation":5,"device":0,"wait_on_stream":7,)"
                    R"("wait_on_cuda_event_record_corr_id":4,"wait_on_cuda_event_id":2)"))
          .Raw(sync("Stream Sync", R"("stream":7,"correlation":6,"device":0)"))
          .Raw(sync("Context Sync", R"("stream":-1,"correlation":8,"device":0)"))
          .Json());
  using timeline::WaitKind;
  ASSERT_EQ(trace.waits.size(), 3U);
  EXPECT_EQ(trace.waits[0].kind, WaitKind::kStreamEvent);
  EXPECT_EQ(trace.waits[0].event_recorded, 4U);
  EXPECT_EQ(trace.streams.at(trace.waits[0].stream), "0/20");
  EXPECT_EQ(trace.streams.at(trace.waits[0].on_stream), "0/7");
  EXPECT_EQ(trace.waits[1].kind, WaitKind::kStream);
  EXPECT_EQ(trace.streams.at(trace.waits[1].stream), "0/7");
  EXPECT_EQ(trace.waits[2].kind, WaitKind::kDevice);
  EXPECT_EQ(trace.waits[2].stream, timeline::WaitRecord::kNoStream);
  ASSERT_EQ(trace.event_calls.size(), 1U);
  EXPECT_EQ(trace.event_calls[0].correlation, 4U);
}

TEST(KinetoReaderTest, GzipZstdAndBareArraysReadTheSame) {
  const std::string text = testing::SmallTrainingTrace();
  const std::string want = Summary(Read(text));
  EXPECT_THAT(want, ::testing::StartsWith("3"));
  EXPECT_EQ(Summary(Read(testing::Gzip(text))), want);
  EXPECT_EQ(Summary(Read(testing::Zstd(text))), want);
  EXPECT_EQ(Summary(Read(testing::Gzip(text.substr(0, 1000)) + testing::Gzip(text.substr(1000)))), want);
  const size_t begin = text.find('[', text.find("traceEvents"));
  EXPECT_EQ(Summary(Read(text.substr(begin, text.rfind(']') - begin + 1))), want);
}

// Every complete event as one that begins and one that ends, in the order of time.
std::string InPairs(const std::string& json) {
  struct Event {
    double t;
    int order;
    std::string text;
  };
  std::vector<Event> events;
  auto trace = nlohmann::json::parse(json);
  for (auto event : trace["traceEvents"]) {
    const double ts = event["ts"], end = ts + event.value("dur", 0.0);
    if (event["ph"] == "X") {
      nlohmann::json ending = {{"ph", "E"}, {"pid", event["pid"]}, {"tid", event["tid"]}, {"ts", end}};
      events.push_back({end, 0, ending.dump()});
      event["ph"] = "B";
      event.erase("dur");
    }
    events.push_back({ts, 1, event.dump()});
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.t, a.order) < std::tie(b.t, b.order);
  });
  std::string all;
  for (const Event& event : events) all += (all.empty() ? "" : ",\n") + event.text;
  trace.erase("traceEvents");
  const std::string head = trace.dump();
  return head.substr(0, head.size() - 1) + ", \"traceEvents\": [" + all + "]}";
}

TEST(KinetoReaderTest, EventsInTwoHalvesReadTheSame) {
  const std::string text = testing::SmallTrainingTrace();
  const DeviceTrace trace = Read(InPairs(text));
  EXPECT_EQ(Summary(trace), Summary(Read(text)));
  EXPECT_EQ(trace.noticed.left_out, 0);
}

TEST(KinetoReaderTest, HalvesOfEventsWithoutTheOtherAreLeftOut) {
  const auto half = [](char phase, const std::string& name, int thread, int t) {
    return std::string(R"({"ph": ")") + phase + R"(", "cat": "cpu_op", "name": ")" + name +
           R"(", "pid": 1, "tid": )" + std::to_string(thread) + ", \"ts\": " + std::to_string(t) + "}";
  };
  const DeviceTrace trace = Read(TraceBuilder()
                                     .Raw(half('E', "begun before", 1, 1))
                                     .Raw(half('B', "whole", 1, 2))
                                     .Raw(half('B', "ends after", 2, 3))
                                     .Raw(half('E', "whole", 1, 4))
                                     .Raw(half('B', "backwards", 1, 9))
                                     .Raw(half('E', "backwards", 1, 8))
                                     .Json());
  ASSERT_EQ(trace.spans.size(), 1U);
  EXPECT_EQ(trace.names[trace.spans[0].name], "whole");
  EXPECT_EQ(trace.spans[0].end_ns - trace.spans[0].begin_ns, 2'000);
  EXPECT_EQ(trace.noticed.left_out, 3);
}

TEST(KinetoReaderTest, OldCategoryNamesMeanTheSame) {
  const auto build = [](TraceBuilder trace) {
    trace.Step(1, 0, 1000).Loader(5, 100).Op("aten::mm", 110, 20).Launched("volta_sgemm_nn", 120, 130, 200);
    trace.Launch(115, 3, 9).Copy("Memcpy HtoD (Pinned -> Device)", 400, 50, 9, 4096);
    return Read(trace.Json());
  };
  EXPECT_EQ(Summary(build(TraceBuilder().OldNames())), Summary(build(TraceBuilder())));
}

TEST(KinetoReaderTest, TheBaseTimeGivesTheWallClock) {
  const DeviceTrace trace = Read(TraceBuilder()
                                     .Property("\"baseTimeNanoseconds\": 1751410836000000000")
                                     .Kernel("k", 1428625731516.983, 1, 1)
                                     .Json());
  EXPECT_EQ(trace.base_ns, 1751410836000000000);
  EXPECT_EQ(trace.ops[0].begin_ns, 1428625731516983);
}

TEST(KinetoReaderTest, RankAndDeviceNamesComeFromTheHead) {
  const DeviceTrace trace = Read(testing::SmallTrainingTrace());
  EXPECT_EQ(trace.rank, 1);
  EXPECT_EQ(trace.world_size, 2);
  EXPECT_THAT(trace.devices, ::testing::ElementsAre("Test GPU"));
  EXPECT_THAT(trace.multiprocessors, ::testing::ElementsAre(80));
}

TEST(KinetoReaderTest, CollectivesKnowTheirBytesFromTheHostsCall) {
  const DeviceTrace trace = Read(testing::SmallTrainingTrace());
  const auto result = timeline::SummariseRank(trace);
  ASSERT_EQ(result.info.tables->collectives.size(), 1U);
  const record::CollectiveStats& stats = result.info.tables->collectives[0];
  EXPECT_EQ(stats.kind, "all_reduce");
  EXPECT_EQ(stats.count, 3);
  EXPECT_EQ(stats.bytes, 3 * 4000);
  EXPECT_EQ(stats.sum_ns, 3 * 2'000'000);
}

TEST(KinetoReaderTest, CollectivesKnowTheirBytesFromTheirOwnArguments) {
  const DeviceTrace trace = Read(
      TraceBuilder()
          .Kernel(
              "ncclDevKernel_AllGather_RING_LL", 10, 5, 3, 20,
              R"(, "Collective name": "_allgather_base", "In msg nelems": 100, "Out msg nelems": 800, "Group size": 8,)"
              R"( "dtype": "BFloat16", "Process Group Name": "7")")
          .Json());
  ASSERT_EQ(trace.collectives.size(), 1U);
  EXPECT_EQ(trace.collectives[0].bytes, 1600);
  EXPECT_EQ(trace.collectives[0].group_size, 8);
  EXPECT_EQ(trace.names[trace.collectives[0].group], "7");
}

TEST(KinetoReaderTest, KernelsOfACudaGraphShareItsLaunch) {
  const DeviceTrace trace = Read(TraceBuilder()
                                     .Call("cudaGraphLaunch", 0, 10, 5)
                                     .Kernel("a", 20, 10, 5)
                                     .Kernel("b", 30, 10, 5)
                                     .Kernel("c", 45, 10, 5)
                                     .Json());
  ASSERT_EQ(trace.ops.size(), 3U);
  for (const auto& op : trace.ops) EXPECT_EQ(op.launch_end_ns, 10'000);
}

TEST(KinetoReaderTest, HipTracesReadLikeCudaOnes) {
  const DeviceTrace trace = Read(
      TraceBuilder()
          .Raw(
              R"({"ph":"X","cat":"hip_runtime","name":"hipLaunchKernel","pid":1,"tid":2,"ts":1,"dur":2,"args":{"correlation":9}})")
          .Kernel("Cijk_Ailk_Bljk_HB_MT128x128x32_MI32x32x8x1", 5, 10, 9)
          .Kernel("ncclDevKernel_Generic_4", 15, 5, 0)
          .Json());
  ASSERT_EQ(trace.ops.size(), 2U);
  EXPECT_EQ(trace.ops[0].launch_begin_ns, 1'000);
  EXPECT_EQ(trace.ops[0].lane, Lane::kMatmulTensor);
  EXPECT_EQ(trace.ops[1].lane, Lane::kComm);
}

// Kineto with roctracer, before ROCm 6.3: no "correlation", and the grid with the call.
TEST(KinetoReaderTest, OldHipTracesTieKernelsByTheirExternalId) {
  const DeviceTrace trace = Read(
      TraceBuilder()
          .Raw(
              R"({"ph":"X","cat":"cuda_runtime","name":"hipExtModuleLaunchKernel","pid":1,"tid":2,"ts":1,"dur":2,)"
              R"("args":{"External id":9,"block dim":[256,1,1],"grid dim":[512,4,1]}})")
          .Raw(
              R"({"ph":"X","cat":"kernel","name":"Cijk_Ailk","pid":2,"tid":0,"ts":5,"dur":7,"args":{"External id":9}})")
          .Json());
  ASSERT_EQ(trace.ops.size(), 1U);
  EXPECT_EQ(trace.ops[0].launch_begin_ns, 1'000);
  EXPECT_EQ(trace.ops[0].blocks, 8) << "512 x 4 threads in blocks of 256";
}

TEST(KinetoReaderTest, AnExternalIdIsNoCorrelationId) {
  const DeviceTrace trace = Read(
      TraceBuilder()
          .Launch(1, 2, 9)
          .Raw(
              R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":5,"dur":7,"args":{"External id":9}})")
          .Json());
  EXPECT_EQ(trace.ops[0].call, timeline::kNone) << "of an operator, by chance the same number";
}

TEST(KinetoReaderTest, KernelsKnowHowManyBlocksTheyHave) {
  const DeviceTrace trace = Read(
      TraceBuilder()
          .Raw(
              R"({"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":5,"dur":7,"args":{"grid":[12,3,2]}})")
          .Raw(
              R"({"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":15,"dur":7,"args":{"grid":[99999,99,1]}})")
          .Raw(
              R"({"ph":"X","cat":"kernel","name":"c","pid":0,"tid":7,"ts":25,"dur":7,"args":{"grid":["x"]}})")
          .Json());
  EXPECT_EQ(trace.ops[0].blocks, 72);
  EXPECT_EQ(trace.ops[1].blocks, timeline::kMaxBlocks);
  EXPECT_EQ(trace.ops[2].blocks, 0);
}

TEST(KinetoReaderTest, OperatorsWithKnownWorkAreKeptWithTheirShapesHoweverDeep) {
  TraceBuilder trace;
  trace.Op("aten::linear", 0, 100).Op("aten::t", 5, 5);
  trace.Shaped("aten::addmm", 20, 50, "[[8], [4, 16], [16, 8], [], []]",
               R"(["float", "float", "float", "Scalar", "Scalar"])", R"(["", "", "", "1", "1"])");
  const DeviceTrace read = Read(trace.Json());
  ASSERT_EQ(read.operators.calls.size(), 2U);
  EXPECT_EQ(read.spans.size(), 1U);
  const auto shape_of = [&](size_t call) { return read.operators.shapes[read.operators.calls[call].shape]; };
  EXPECT_EQ(read.names[shape_of(0).name], "aten::linear");
  EXPECT_EQ(read.names[shape_of(1).name], "aten::addmm");
  EXPECT_THAT(shape_of(1).inputs[2].dims, ::testing::ElementsAre(16, 8));
  EXPECT_EQ(read.operators.calls[1].begin_ns, 20'000);
  EXPECT_EQ(read.operators.calls[1].end_ns(), 70'000);
}

TEST(KinetoReaderTest, LookupsInTablesAreKeptOnlyWhereTheCpuComputes) {
  const auto with_lookup = [] {
    TraceBuilder trace;
    trace.Shaped("aten::_index_put_impl_", 20, 50, "[[100, 16], [], [4, 16]]", R"(["float", "", "float"])",
                 R"(["", "", ""])");
    return trace;
  };
  EXPECT_EQ(Read(with_lookup().Json()).operators.calls.size(), 1U);
  EXPECT_TRUE(Read(with_lookup().Launched("index_put_kernel", 30, 100, 10).Json()).operators.calls.empty());
}

TEST(KinetoReaderTest, CountersAndMemoryBecomeSeries) {
  const auto result = timeline::SummariseRank(Read(testing::SmallTrainingTrace()));
  std::map<std::string, size_t> readings;
  for (const record::Series& series : result.series) readings[series.key.name] = series.readings.size();
  EXPECT_EQ(readings["counter"], 3U);
  EXPECT_EQ(readings["device_memory_allocated"], 3U);
  EXPECT_EQ(readings["device_memory_reserved"], 3U);
}

TEST(KinetoReaderTest, OfNestedOperatorsTheOutermostIsKept) {
  for (const bool inner_first : {false, true}) {
    TraceBuilder trace;
    if (!inner_first) trace.Op("aten::item", 10, 100);
    trace.Op("aten::_local_scalar_dense", 20, 50);
    if (inner_first) trace.Op("aten::item", 10, 100);
    trace.Op("aten::add", 200, 10);
    const DeviceTrace read = Read(trace.Json());
    ASSERT_EQ(read.spans.size(), 2U) << inner_first;
    EXPECT_EQ(read.names[read.spans[0].name], "aten::item");
    EXPECT_EQ(read.spans[0].inner, inner_first ? 0 : 1);
    EXPECT_EQ(read.operator_start_ns, inner_first ? 0 : 10'000) << "the inner one began 10 us later";
  }
}

TEST(KinetoReaderTest, StacksAreLeftOutUnlessAsked) {
  const std::string text =
      TraceBuilder().Python("torch/nn/modules/module.py(1): _call_impl", 0, 5).Kernel("k", 1, 1, 1).Json();
  EXPECT_TRUE(Read(text).spans.empty());
  ReadOptions options;
  options.stacks = true;
  EXPECT_EQ(Read(text, options).spans.size(), 1U);
}

TEST(KinetoReaderTest, RangesThatTheUserNamedStepsServeWhereTheProfilerMarksNone) {
  TraceBuilder trace;
  for (int i = 0; i < 4; ++i)
    trace.Annotation("iteration " + std::to_string(10 + i), i * 100, 90).Kernel("k", i * 100 + 5, 10, 1);
  const DeviceTrace read = Read(trace.Json());
  ASSERT_EQ(read.steps.size(), 4U);
  EXPECT_EQ(read.steps[2].number, 12);
  EXPECT_THAT(read.notes, ::testing::Contains(::testing::HasSubstr("'iteration'")));
}

}  // namespace
}  // namespace fullbore::ingest::kineto
