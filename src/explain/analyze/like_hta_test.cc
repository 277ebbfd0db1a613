#include "explain/analyze/like_hta.h"

#include <gmock/gmock.h>

#include "explain/analyze/testing/scene.h"
#include "explain/ingest/ingest.h"
#include "explain/ingest/real_traces.h"

namespace fullbore::analyze {
namespace {

using timeline::DeviceOp;
using timeline::DeviceTrace;
using timeline::Lane;

void AddLaunched(DeviceTrace* trace, std::string_view name, int64_t launch_ns, int64_t begin_ns,
                 int64_t end_ns) {
  const auto correlation = static_cast<uint32_t>(trace->ops.size() + 1);
  timeline::HostCall call;
  call.begin_ns = launch_ns;
  call.end_ns = launch_ns + 1;
  call.correlation = correlation;
  trace->calls.push_back(call);
  DeviceOp op;
  op.begin_ns = begin_ns;
  op.end_ns = end_ns;
  op.correlation = correlation;
  op.name = trace->names.Find(name);
  op.lane = timeline::ClassifyKernel(name);
  op.kernel = true;
  trace->ops.push_back(op);
}

DeviceTrace TwoSteps() {
  DeviceTrace trace;
  trace.threads = {"1/1"};
  trace.streams = {"0/7"};
  trace.steps = {{0, 50'000, 3, 0}, {50'000, 90'000, 4, 0}};
  AddLaunched(&trace, "gemm", 1'000, 10'500, 20'700);
  AddLaunched(&trace, "ncclKernel_AllReduce", 2'000, 60'000, 70'000);  // launched in the step before it runs
  AddLaunched(&trace, "gemm", 51'000, 80'000, 90'000);
  trace.Finish();
  return trace;
}

TEST(CutLikeHtaTest, LeavesOutWhatWasLaunchedInTheLastStep) {
  DeviceTrace trace = TwoSteps();
  CutLikeHta(trace);
  ASSERT_EQ(trace.ops.size(), 2U);
  EXPECT_EQ(trace.ops[1].begin_ns, 60'000);
  EXPECT_EQ(trace.steps.size(), 1U);
}

TEST(CutLikeHtaTest, RoundsBeginsUpAndEndsDown) {
  DeviceTrace trace = TwoSteps();
  CutLikeHta(trace);
  EXPECT_EQ(trace.ops[0].begin_ns, 11'000);
  EXPECT_EQ(trace.ops[0].end_ns, 20'000);
}

TEST(CutLikeHtaTest, KeepsAllOfATraceWithOneStep) {
  DeviceTrace trace = TwoSteps();
  trace.steps.resize(1);
  CutLikeHta(trace);
  EXPECT_EQ(trace.ops.size(), 3U);
}

TEST(CutLikeHtaTest, ClassifiesByItsExpressions) {
  DeviceTrace trace;
  trace.threads = {"1/1"};
  trace.streams = {"0/7"};
  int64_t t = 0;
  for (const char* name :
       {"ncclKernel_AllReduce", "ncclDevReduce", "Memcpy HtoD", "void cuMemcpyRows()", "gemm"}) {
    AddLaunched(&trace, name, t, t + 1'000, t + 2'000);
    t += 2'000;
  }
  trace.Finish();
  CutLikeHta(trace);
  std::vector<std::string> types;
  for (const DeviceOp& op : trace.ops) {
    const uint32_t bit = timeline::Bit(op.lane);
    types.emplace_back((bit & timeline::kComputeLanes) != 0 ? "compute"
                       : bit == timeline::kCommLane         ? "comm"
                                                            : "copy");
  }
  EXPECT_THAT(types, ::testing::ElementsAre("comm", "compute", "copy", "copy", "compute"));
}

struct Published {
  const char* file;
  double idle_percent;
  double compute_percent;  // negative: not published
  double overlap_percent;
};

class AgreesWithHta : public ::testing::TestWithParam<Published> {};

TEST_P(AgreesWithHta, ToAHundredthOfAPoint) {
  if (!ingest::HaveRealTraces()) GTEST_SKIP() << "no traces in ../shared/traces or $FULLBORE_TRACES";
  const Published& want = GetParam();
  ingest::TraceOptions options;
  options.cut = CutLikeHta;
  const auto recording = ingest::ReadTraces({ingest::RealTraces() + "/" + want.file}, options);
  ASSERT_TRUE(recording.ok()) << ToString(recording.error());
  const record::RankInfo& rank = recording->stages.at(0).ranks.at(0);
  const auto percent = [](int64_t part, int64_t whole) {
    return 100 * static_cast<double>(part) / static_cast<double>(whole);
  };
  EXPECT_NEAR(percent(*rank.span_ns - *rank.busy_ns, *rank.span_ns), want.idle_percent, 0.01);
  if (want.compute_percent >= 0) {
    EXPECT_NEAR(percent(*rank.compute_ns, *rank.span_ns), want.compute_percent, 0.01);
  }
  if (want.overlap_percent >= 0) {
    EXPECT_NEAR(percent(*rank.comm_overlapped_ns, *rank.comm_ns), want.overlap_percent, 0.01);
  }
}

INSTANTIATE_TEST_SUITE_P(
    OnRealTraces, AgreesWithHta,
    ::testing::Values(Published{"ddp-v100-rank1of2.json.gz", 46.08, 35.55, 0},
                      Published{"ddp-v100-trace-diff-test.json.gz", 7.47, 68.31, 68.80},
                      Published{"resnet50-v100-workers0.pt.trace.json.gz", 39.43, -1, -1},
                      Published{"resnet50-v100-workers4.pt.trace.json.gz", 24.32, -1, -1},
                      Published{"vit-h100-eager.json.gz", 85.87, 14.09, -1}),
    [](const auto& test) { return "Trace" + std::to_string(test.index); });

// What HTA 0.5 printed for the same files: get_idle_time_breakdown and get_gpu_kernel_breakdown, in
// microseconds.
std::vector<std::string> SectionLikeHta(const char* file, const char* name,
                                        std::initializer_list<const char*> columns) {
  const Section* section = SectionNamed(name);
  Table table{section->columns, {}, {}};
  ingest::TraceOptions options;
  options.cut = CutLikeHta;
  const auto visited = ingest::VisitTraces(
      {ingest::RealTraces() + "/" + file}, options,
      [&](DeviceTrace& trace, const std::string&) { section->append(RankTrace(trace), &table); });
  EXPECT_TRUE(visited.ok());
  return Rows(table, columns);
}

TEST(SectionsLikeHtaTest, IdleBreakdownIsHtas) {
  if (!ingest::HaveRealTraces()) GTEST_SKIP() << "no traces in ../shared/traces or $FULLBORE_TRACES";
  EXPECT_THAT(
      SectionLikeHta("ddp-v100-rank1of2.json.gz", "idle-breakdown", {"stream", "category", "idle_ns"}),
      ::testing::ElementsAre("1/7, host_wait, 791330000", "1/7, kernel_wait, 16727000",
                             "1/7, other, 73829000", "1/14, host_wait, 933139000",
                             "1/14, kernel_wait, 5568000", "1/14, other, 4444000"));
}

TEST(SectionsLikeHtaTest, KernelTypesAreHtas) {
  if (!ingest::HaveRealTraces()) GTEST_SKIP() << "no traces in ../shared/traces or $FULLBORE_TRACES";
  EXPECT_THAT(SectionLikeHta("ddp-v100-trace-diff-test.json.gz", "kernel-types", {"by", "what", "sum_ns"}),
              ::testing::IsSupersetOf({"together, compute, 267839000", "together, compute+comm, 129148000",
                                       "together, copy, 92887000", "together, comm, 53846000",
                                       "together, compute+copy, 30501000", "together, comm+copy, 5512000",
                                       "together, compute+comm+copy, 1728000"}));
}

}  // namespace
}  // namespace fullbore::analyze
