// The work of operators in traces of real GPUs, against what TraceLens computes for the same traces, and what
// experts say about single operators (../shared/traces/README.md).
#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <map>

#include "base/text.h"
#include "explain/ingest/ingest.h"
#include "explain/ingest/real_traces.h"
#include "explain/roofline/roofline.h"

namespace fullbore::roofline {
namespace {

using record::RooflineOperator;
using record::RooflineReason;
using ::testing::Contains;

record::Roofline Read(const std::string& path, const Device* device = nullptr) {
  record::Roofline judged;
  const auto read = ingest::VisitTraces({path}, {}, [&](timeline::DeviceTrace& trace, const std::string&) {
    judged = Judge(trace, timeline::FindSteps(trace).steps, device != nullptr ? device : DeviceOf(trace));
  });
  EXPECT_TRUE(read.ok()) << path;
  return judged;
}

std::string PathOf(const std::string& trace) {
  for (const char* form : {"/{}.json.gz", "/kernels/{}.json.gz", "/{}.pt.trace.json.gz"}) {
    std::string path = form;
    path.replace(path.find("{}"), 2, trace);
    if (std::filesystem::exists(ingest::RealTraces() + path)) return ingest::RealTraces() + path;
  }
  return "";
}

struct Reference {
  std::string trace, name, shape;
  int64_t count = 0;
  double gflop = 0, kernel_us = 0;
  std::optional<double> mb;
};

// "((1024,), (8944, 1024), ())" as we write it: "(1024) x (8944, 1024)".
std::string ShapeOf(const std::string& tuple) {
  std::string text, open;
  for (const char c : tuple.substr(std::min<size_t>(1, tuple.size()))) {
    if (c == '(') {
      open = "(";
    } else if (c == ')' && !open.empty()) {
      if (open.back() == ',') open.pop_back();
      if (open != "(") text += (text.empty() ? "" : " x ") + open + ")";
      open.clear();
    } else if (!open.empty() && !(c == ' ' && open == "(")) {
      open += c;
    }
  }
  return text;
}

std::vector<Reference> References() {
  std::vector<Reference> all;
  std::ifstream file(ingest::RealTraces() + "/operators.tsv");
  std::string line;
  std::getline(file, line);  // the headings
  while (std::getline(file, line)) {
    const auto cells = Split(line, '\t');
    if (cells.size() < 8) continue;
    Reference one;
    one.trace = cells[0];
    one.name = cells[1];
    one.shape = ShapeOf(std::string(cells[2]));
    one.count = ParseInt(cells[4]).value_or(0);
    one.gflop = ParseDouble(cells[5]).value_or(0);
    one.mb = ParseDouble(cells[6]);
    one.kernel_us = ParseDouble(cells[7]).value_or(0);
    all.push_back(one);
  }
  return all;
}

// Rows of one operator and shape differ by types and strides: the one that took as long as TraceLens says.
const RooflineOperator* Find(const record::Roofline& judged, const Reference& want) {
  const std::string name = want.name == "aten::layer_norm" ? "aten::native_layer_norm" : want.name;
  const RooflineOperator* nearest = nullptr;
  double distance = 0;
  for (const RooflineOperator& one : judged.operators) {
    if (one.name != name || one.shape != want.shape || one.count != want.count) continue;
    const double us = static_cast<double>(one.device_ns) / 1e3 / static_cast<double>(one.count);
    if (nearest != nullptr && std::abs(us - want.kernel_us) >= distance) continue;
    nearest = &one;
    distance = std::abs(us - want.kernel_us);
  }
  return nearest;
}

bool Within(double ours, double theirs, double part) {
  return std::abs(ours - theirs) <= part * std::abs(theirs);
}

class TracesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!ingest::HaveRealTraces()) GTEST_SKIP() << "no traces in ../shared/traces or $FULLBORE_TRACES";
  }
};

TEST_F(TracesTest, FlopsAndBytesAreThoseOfTraceLensToOnePercent) {
  std::map<std::string, record::Roofline> judged;
  int rows = 0, flops = 0, bytes = 0, copies = 0, shapeless = 0;
  for (const Reference& want : References()) {
    SCOPED_TRACE(want.trace + " " + want.name + " " + want.shape);
    ++rows;
    if (want.shape.empty()) {  // recorded without shapes: TraceLens says no FLOPs, we say nothing
      ++shapeless;
      continue;
    }
    if (judged.count(want.trace) == 0) judged[want.trace] = Read(PathOf(want.trace));
    const RooflineOperator* found = Find(judged[want.trace], want);
    ASSERT_NE(found, nullptr);
    ASSERT_TRUE(found->flops && found->bytes);
    if (want.name == "aten::copy_") {  // TraceLens counts an operation an element; a copy computes nothing
      EXPECT_EQ(*found->flops, 0);
      ++copies;
    } else {
      EXPECT_TRUE(Within(*found->flops / 1e9, want.gflop, 0.01))
          << *found->flops / 1e9 << " for " << want.gflop;
      flops += Within(*found->flops / 1e9, want.gflop, 0.01);
    }
    const double mb = *found->bytes / (1 << 20);
    EXPECT_TRUE(Within(mb, *want.mb, 0.01)) << mb << " for " << *want.mb;
    bytes += Within(mb, *want.mb, 0.01);
  }
  RecordProperty("rows", rows);
  RecordProperty("flops_agree", flops);
  RecordProperty("bytes_agree", bytes);
  EXPECT_EQ(rows, flops + copies + shapeless);
  EXPECT_EQ(rows, bytes + shapeless);
}

std::vector<RooflineReason> Reasons(const RooflineOperator& one) {
  std::vector<RooflineReason> reasons;
  for (const record::RooflineWhy& why : one.why) reasons.push_back(why.reason);
  return reasons;
}

// What experts say about operators that use their device badly. All were measured on an MI300X; some of the
// files say so, the others leave it out: the reason has to be the same.
struct Expert {
  const char* trace;
  const char* name;
  RooflineReason reason;
  bool by_shape = true;  // known without knowing the device
};

void PrintTo(const Expert& expert, std::ostream* out) { *out << expert.trace; }

class ExpertTest : public TracesTest, public ::testing::WithParamInterface<Expert> {};

TEST_P(ExpertTest, TheOperatorHasTheReasonThatAnExpertGives) {
  const Expert& expert = GetParam();
  const std::string path = ingest::RealTraces() + "/kernels/" + expert.trace + ".json.gz";
  const Device* mi300 = DeviceNamed("AMD Instinct MI300X");
  for (const Device* device : {static_cast<const Device*>(nullptr), mi300}) {
    if (device == nullptr && !expert.by_shape) continue;
    bool found = false;
    for (const RooflineOperator& one : Read(path, device).operators) {
      if (one.name != expert.name) continue;
      found = true;
      EXPECT_THAT(Reasons(one), Contains(expert.reason));
    }
    EXPECT_TRUE(found);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , ExpertTest,
    ::testing::Values(
        Expert{"gemm_01_compute_few_tiles", "aten::mm", RooflineReason::kFewTiles},
        Expert{"gemm_03_compute_misaligned", "aten::mm", RooflineReason::kMisaligned},
        Expert{"conv_01_large_spatial_small_ch", "aten::convolution", RooflineReason::kFewChannels},
        Expert{"conv_04_depthwise", "aten::convolution", RooflineReason::kDepthwise},
        Expert{"conv_07_transposed", "aten::convolution", RooflineReason::kSmallKernels},
        Expert{"conv_07_transposed", "aten::mul_", RooflineReason::kSmallKernels},
        Expert{"moe_04_top2_dense", "vllm::rocm_aiter_fused_moe", RooflineReason::kSmallKernels},
        Expert{"moe_04_top2_dense", "aten::mul_", RooflineReason::kSmallKernels},
        Expert{"sdpa_01_long_seq_low_eff", "aten::_scaled_dot_product_flash_attention",
               RooflineReason::kAttentionSlow, false},
        Expert{"elem_01_add_poor_bw", "aten::add", RooflineReason::kLowBandwidth, false}),
    [](const auto& test) {
      std::string name = std::string(test.param.trace) + "_" + test.param.name;
      std::replace_if(
          name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
      return name;
    });

TEST_F(TracesTest, DepthwiseConvolutionsAndAdditionsAreBoundByMemory) {
  const Device* mi300 = DeviceNamed("AMD Instinct MI300X");
  for (const char* trace : {"conv_04_depthwise", "elem_01_add_poor_bw"}) {
    const record::Roofline judged = Read(ingest::RealTraces() + "/kernels/" + trace + ".json.gz", mi300);
    EXPECT_EQ(judged.operators.at(0).bound, record::Bound::kMemory) << trace;
  }
}

TEST_F(TracesTest, AThirdOfTheBandwidthAndAQuarterOfThePeakAreWhatTheExpertSays) {
  EXPECT_NEAR(*Read(PathOf("elem_01_add_poor_bw")).operators.at(0).Reached(), 1.0 / 3, 0.05);
  EXPECT_NEAR(*Read(PathOf("sdpa_01_long_seq_low_eff")).operators.at(0).Reached(), 1.0 / 4, 0.05);
}

// By hand: 4.09 G multiplications a picture (He et al. 2016 say 3.8, without the strides that torchvision
// moved), times two operations and three passes, less the first layer's gradient of the picture.
TEST_F(TracesTest, TheFlopsOfAResnetAreThoseOfItsLayers) {
  const record::Roofline judged = Read(PathOf("resnet50-v100-workers0"));
  ASSERT_TRUE(judged.steps);
  EXPECT_EQ(judged.device, "NVIDIA V100 SXM2");
  const double first_layer = 2.0 * 64 * 147 * 112 * 112;
  const double a_picture = 3 * 2 * 4.089e9 - first_layer;
  EXPECT_NEAR(judged.steps->matrix_flops / (6 * 32 * a_picture), 1, 0.01);
  EXPECT_EQ(judged.steps->matrix_unknown_ns, 0);
  EXPECT_LT(*judged.steps->floor_ns, static_cast<double>(judged.steps->device_ns));
}

TEST_F(TracesTest, NormalisationsOfTheLlmAreUnfusedAndItsRotationsAChain) {
  const record::Roofline judged = Read(PathOf("qwen-h100-eager"));
  ASSERT_GE(judged.chains.size(), 2U);
  EXPECT_EQ(judged.chains[0].reason, RooflineReason::kElementwiseChain);
  EXPECT_EQ(judged.chains[0].count, 24);
  EXPECT_EQ(judged.chains[1].reason, RooflineReason::kNormalisationUnfused);
  EXPECT_EQ(judged.chains[1].count, 49) << "two in each of 24 layers, and the last";
  EXPECT_THAT(judged.notes, Contains(::testing::HasSubstr("launches are not in the trace")));
}

TEST_F(TracesTest, ATraceWithoutShapesHasNoFigures) {
  const record::Roofline judged = Read(PathOf("ddp-v100-rank1of2"));
  EXPECT_TRUE(judged.operators.empty());
  EXPECT_THAT(judged.notes, Contains(::testing::HasSubstr("record_shapes=True")));
}

}  // namespace
}  // namespace fullbore::roofline
