// The figures that others, and plain interval unions, got from traces of real GPUs.
#include "explain/ingest/real_traces.h"

#include <gmock/gmock.h>

#include <numeric>

#include "explain/ingest/ingest.h"

namespace fullbore::ingest {
namespace {

using record::Share;

record::Stage Read(const std::string& file) {
  auto recording = ReadTraces({RealTraces() + "/" + file});
  EXPECT_TRUE(recording.ok()) << ToString(recording.error());
  return recording.ok() ? recording->stages.at(0) : record::Stage{};
}

std::vector<double> StepMs(const record::RankInfo& rank) {
  std::vector<double> ms;
  for (const record::Step& step : rank.steps) ms.push_back(static_cast<double>(step.wall_ns) / 1e6);
  return ms;
}

double ShareOf(const record::RankInfo& rank, Share share) {
  double part = 0;
  double whole = 0;
  for (const record::Step& step : rank.steps) {
    part += static_cast<double>(step.share_ns[Index(share)]);
    whole += static_cast<double>(step.wall_ns);
  }
  return part / whole;
}

class RealTracesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HaveRealTraces()) {
      GTEST_SKIP() << "no traces in ../shared/traces or $FULLBORE_TRACES";
    }
  }
};

struct Figures {
  const char* file;
  int64_t kernels, span, busy, compute, comm, comm_exposed, copy_exposed;
};

void PrintTo(const Figures& figures, std::ostream* out) { *out << figures.file; }

class WholeTraceTest : public RealTracesTest, public ::testing::WithParamInterface<Figures> {};

TEST_P(WholeTraceTest, AgreesToTheNanosecond) {
  const Figures& want = GetParam();
  const record::Stage stage = Read(want.file);
  ASSERT_EQ(stage.ranks.size(), 1U);
  const record::RankInfo& rank = stage.ranks[0];
  EXPECT_EQ(rank.kernels, want.kernels);
  EXPECT_EQ(rank.span_ns, want.span);
  EXPECT_EQ(rank.busy_ns, want.busy);
  EXPECT_EQ(rank.compute_ns, want.compute);
  EXPECT_EQ(rank.comm_ns, want.comm);
  EXPECT_EQ(rank.comm_exposed_ns, want.comm_exposed);
  EXPECT_EQ(rank.copy_exposed_ns, want.copy_exposed);
  int64_t classes = 0;
  for (const auto& [name, ns] : rank.kernel_class_ns) classes += ns;
  EXPECT_EQ(classes, rank.compute_ns);
  for (const record::Step& step : rank.steps) {
    EXPECT_EQ(std::accumulate(step.share_ns.begin(), step.share_ns.end(), int64_t{0}), step.wall_ns);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , WholeTraceTest,
    ::testing::Values(Figures{"ddp-v100-rank1of2.json.gz", 19370, 1732965000, 1000613000, 620516000,
                              357343000, 357343000, 22754000},
                      Figures{"ddp-v100-trace-diff-test.json.gz", 9876, 745239000, 717943000, 548148000,
                              251341000, 73298000, 96497000},
                      Figures{"qwen-h100-eager.json.gz", 1465, 49652832, 45647300, 45432698, 0, 0, 214602},
                      Figures{"resnet50-v100-workers0.pt.trace.json.gz", 8772, 996477000, 603558000,
                              591532000, 0, 0, 12026000},
                      Figures{"resnet50-v100-workers4.pt.trace.json.gz", 8868, 801550000, 614413000,
                              594868000, 0, 0, 19545000},
                      Figures{"vit-h100-eager.json.gz", 154, 7559844, 1225310, 1220926, 0, 0, 4384}),
    [](const auto& test) {
      std::string name = test.param.file;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; },
          '_');
      return name;
    });

TEST_F(RealTracesTest, StepsAreThoseThatTorchTbProfilerCounts) {
  const record::Stage stage = Read("resnet50-v100-workers0.pt.trace.json.gz");
  EXPECT_THAT(StepMs(stage.ranks[0]),
              ::testing::Pointwise(::testing::DoubleNear(0.05), {187.9, 175.2, 179.7, 174.6, 182.2, 166.0}));
}

TEST_F(RealTracesTest, TheDataLoaderTimeIsThatOfTorchTbProfilerToOnePercent) {
  const record::Stage stage = Read("resnet50-v100-workers0.pt.trace.json.gz");
  const record::RankInfo& rank = stage.ranks[0];
  int64_t wait_ns = 0;
  for (const record::Step& step : rank.steps) wait_ns += step.share_ns[Index(Share::kDataWait)];
  const double us_a_step = static_cast<double>(wait_ns) / 1e3 / static_cast<double>(rank.steps.size());
  EXPECT_NEAR(us_a_step, 59'262, 593);
}

TEST_F(RealTracesTest, TheKindOfTheLoaderAndItsLineAreKnown) {
  const record::Stage stage = Read("resnet50-v100-workers0.pt.trace.json.gz");
  const auto& facts = stage.ranks[0].facts;
  EXPECT_EQ(facts.at("loader_processes"), "\"single\"");
  EXPECT_EQ(facts.at("loader_where"), "\"resnet50_profiler_api.py(42): <module>\"");
}

TEST_F(RealTracesTest, TheFixedLoaderTakesTheMedianStepThatWasMeasured) {
  const record::Stage stage = Read("resnet50-v100-workers4.pt.trace.json.gz");
  std::vector<double> ms = StepMs(stage.ranks[0]);
  std::sort(ms.begin(), ms.end());
  EXPECT_NEAR((ms[2] + ms[3]) / 2, 126.7, 0.05);
  EXPECT_LT(ShareOf(stage.ranks[0], Share::kDataWait), 0.05);
}

TEST_F(RealTracesTest, EagerInferenceOfSmallKernelsWaitsForLaunches) {
  const record::Stage stage = Read("vit-h100-eager.json.gz");
  EXPECT_GT(ShareOf(stage.ranks[0], Share::kLaunch), 0.75);
}

TEST_F(RealTracesTest, NoMatmulOfResnetRunsOnTensorCores) {
  const record::Stage stage = Read("resnet50-v100-workers0.pt.trace.json.gz");
  const auto& classes = stage.ranks[0].kernel_class_ns;
  EXPECT_EQ(classes.count("matmul_tensor"), 0U);
  EXPECT_GT(classes.at("matmul"), 300'000'000);
}

TEST_F(RealTracesTest, EightRanksInATarFileAreOneRun) {
  const record::Stage stage = Read("dlrm-v100-8ranks.tar.gz");
  ASSERT_EQ(stage.ranks.size(), 8U);
  for (int r = 0; r < 8; ++r) {
    EXPECT_EQ(stage.ranks[static_cast<size_t>(r)].rank, r);
    EXPECT_EQ(stage.ranks[static_cast<size_t>(r)].steps.size(), 1U);
    EXPECT_TRUE(stage.ranks[static_cast<size_t>(r)].comm_wait_ns.has_value());
  }
}

TEST_F(RealTracesTest, AnNsightExportOfTwoProcessesIsTwoRanks) {
  const record::Stage stage = Read("nsys-2gpu-before.sqlite");
  ASSERT_EQ(stage.ranks.size(), 2U);
  EXPECT_EQ(stage.ranks[0].kernels, 1993);
  EXPECT_EQ(stage.ranks[1].kernels, 2017);
  EXPECT_EQ(stage.ranks[0].device, "cuda:0");
  EXPECT_EQ(stage.ranks[1].device, "cuda:1");
}

}  // namespace
}  // namespace fullbore::ingest
