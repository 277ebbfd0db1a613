#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"
#include "explain/replay/testing/made_graph.h"

namespace fullbore::diagnose {
namespace {

using record::RooflineReason;
using testing::Advises;
using testing::ARun;
using testing::ATrace;
using testing::FindingIn;
using testing::Finds;
using testing::FindsCause;
using ::testing::HasSubstr;
using testing::kMs;
using testing::LeavesOpen;
using ::testing::Not;

record::RooflineOperator AProduct(int64_t device_ms, std::optional<double> reached, RooflineReason reason) {
  record::RooflineOperator product;
  product.name = "aten::mm";
  product.shape = "(256, 131072) x (131072, 512)";
  product.device_ns = device_ms * kMs;
  if (reached) product.attainable_ns = *reached * static_cast<double>(product.device_ns);
  product.why = {{reason, "8 blocks for 304 compute units"}};
  return product;
}

record::RooflineChain AChain(int64_t device_ms, std::optional<int64_t> fused_ms) {
  record::RooflineChain chain;
  chain.operators = {"aten::pow", "aten::mean", "aten::rsqrt", "aten::mul"};
  chain.shape = "(16, 559, 1024)";
  chain.reason = RooflineReason::kNormalisationUnfused;
  chain.device_ns = device_ms * kMs;
  if (fused_ms) chain.fused_ns = static_cast<double>(*fused_ms * kMs);
  return chain;
}

// A trace of 100 steps of 100 ms, 10 s of kernels.
ARun ATraceOn(const char* device) {
  ARun run = ATrace();
  record::Roofline roofline;
  roofline.device = device;
  roofline.classes = {{"matmul_tensor", 10'000 * kMs, 10'000 * kMs, 0, 0, std::nullopt}};
  run.rank().roofline = roofline;
  return run;
}

ARun With(ARun run, const record::RooflineOperator& one) {
  run.rank().roofline->operators.push_back(one);
  return run;
}

ARun With(ARun run, const record::RooflineChain& one) {
  run.rank().roofline->chains.push_back(one);
  return run;
}

constexpr char kMi300[] = "AMD Instinct MI300X";

TEST(InefficientKernelsTest, IsRaisedByAnOperatorFarFromItsLimitWithTheReason) {
  const Diagnosis diagnosis =
      Diagnose(With(ATraceOn(kMi300), AProduct(5'000, 0.1, RooflineReason::kMisaligned)));
  ASSERT_THAT(diagnosis, FindsCause("inefficient-kernels", "misaligned"));
  const Finding& finding = *FindingIn(diagnosis, "inefficient-kernels");
  EXPECT_NEAR(finding.share, 0.45, 1e-9);
  EXPECT_THAT(finding.title, HasSubstr("aten::mm (256, 131072) x (131072, 512): 8 blocks"));
  EXPECT_THAT(finding, Advises("pad the dimension"));
}

TEST(InefficientKernelsTest, PromisesNothingForACureThatNobodyHasMeasured) {
  const Diagnosis diagnosis =
      Diagnose(With(ATraceOn(kMi300), AProduct(5'000, 0.1, RooflineReason::kMisaligned)));
  EXPECT_EQ(FindingIn(diagnosis, "inefficient-kernels")->method, "");
}

// 100 ms of kernels in a step, as many as `elementwise` of which could be fused with their neighbours.
record::StepGraph AGraph(int elementwise) {
  replay::testing::MadeGraph made;
  auto last = made.Add(record::Work::kStepEnd, 0);
  for (int step = 0; step < 5; ++step) {
    for (int i = 0; i < 10; ++i) {
      last = made.Add(record::Work::kDevice, 10'000, {{last, record::Dependency::kStream}});
      made[last].lane = i < elementwise ? record::Lane::kElementwise : record::Lane::kMatmulTensor;
    }
    last = made.Add(record::Work::kStepEnd, 0, {{last, record::Dependency::kStream}});
  }
  return made.Graph(100'000);
}

TEST(InefficientKernelsTest, CostsWhatACompilerSavesIfThatIsMoreThanTheRowsThatShapesShow) {
  ARun run = With(ATraceOn(kMi300), AChain(2'000, 500));
  run.rank().graph = AGraph(6);
  const Diagnosis diagnosis = Diagnose(run);
  const Finding& finding = *FindingIn(diagnosis, "inefficient-kernels");
  EXPECT_GT(finding.share, 0.3) << "six tenths fused, of which about two fifths are left";
  EXPECT_GT(finding.speedup.low, 1);
  EXPECT_LE(finding.speedup.high, 1.1 / (1 - 0.6)) << "hardly more than all six tenths";
}

TEST(InefficientKernelsTest, PromisesNothingOfKernelsThatSomebodyHasYetToWrite) {
  const Diagnosis diagnosis =
      Diagnose(With(ATraceOn(kMi300), AProduct(9'000, 0.3, RooflineReason::kLowBandwidth)));
  ASSERT_THAT(diagnosis, FindsCause("inefficient-kernels", "low-bandwidth"));
  EXPECT_EQ(FindingIn(diagnosis, "inefficient-kernels")->method, "");
}

TEST(InefficientKernelsTest, IsNotRaisedByAFifthOfTheStepForWhichNoCureIsSure) {
  EXPECT_THAT(Diagnose(With(ATraceOn(kMi300), AProduct(3'000, 0.3, RooflineReason::kLowBandwidth))),
              Not(Finds("inefficient-kernels")));
}

TEST(InefficientKernelsTest, IsNotRaisedByATwelfthOfTheStep) {
  EXPECT_THAT(Diagnose(With(ATraceOn(kMi300), AProduct(900, 0.1, RooflineReason::kMisaligned))),
              Not(Finds("inefficient-kernels")));
}

TEST(InefficientKernelsTest, LeavesTensorCoresToTheFindingOfTheirOwn) {
  EXPECT_THAT(Diagnose(With(ATraceOn(kMi300), AProduct(5'000, 0.1, RooflineReason::kNoTensorCores))),
              Not(Finds("inefficient-kernels")));
}

TEST(InefficientKernelsTest, CountsWhatOneKernelCouldDoInsteadOfARow) {
  const Diagnosis diagnosis = Diagnose(With(ATraceOn(kMi300), AChain(4'000, 500)));
  ASSERT_THAT(diagnosis, FindsCause("inefficient-kernels", "normalisation-unfused"));
  const Finding& finding = *FindingIn(diagnosis, "inefficient-kernels");
  EXPECT_NEAR(finding.share, 0.35, 1e-9);
  EXPECT_THAT(finding, Advises("rms_norm"));
}

TEST(InefficientKernelsTest, AnOperatorOfARowCountsOnceAndWithTheRow) {
  record::RooflineOperator part = AProduct(3'000, 0.4, RooflineReason::kNormalisationUnfused);
  const Diagnosis diagnosis = Diagnose(With(With(ATraceOn(kMi300), AChain(4'000, 500)), part));
  EXPECT_NEAR(FindingIn(diagnosis, "inefficient-kernels")->share, 0.35, 1e-9);
}

// A formula written out: each kernel may do well, and all but one of them are needless.
record::RooflineChain AFormula(int64_t device_ms, int64_t fused_ms) {
  record::RooflineChain chain;
  chain.operators = {"aten::pow", "aten::mul", "aten::add", "aten::mul", "aten::tanh"};
  chain.elementary = static_cast<int64_t>(chain.operators.size());
  chain.shape = "(16, 559, 1024)";
  chain.device_ns = device_ms * kMs;
  chain.fused_ns = static_cast<double>(fused_ms * kMs);
  return chain;
}

TEST(InefficientKernelsTest, IsRaisedByAFormulaThatIsWrittenOutThoughItsKernelsDoWell) {
  ARun run = With(ATraceOn(kMi300), AFormula(700, 100));
  run.rank().graph = AGraph(6);
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, FindsCause("inefficient-kernels", "elementwise-chain"));
  const Finding& finding = *FindingIn(diagnosis, "inefficient-kernels");
  EXPECT_THAT(finding.title, HasSubstr("written out"));
  EXPECT_THAT(finding, Advises("torch.compile"));
  EXPECT_GT(finding.speedup.low, 1);
}

TEST(InefficientKernelsTest, IsNotRaisedByAsMuchInRowsOfLibraryKernels) {
  record::RooflineChain chain = AFormula(700, 100);
  chain.operators = {"aten::native_dropout", "aten::add", "aten::native_layer_norm", "aten::mul",
                     "aten::add"};
  chain.elementary = 3;
  EXPECT_THAT(Diagnose(With(ATraceOn(kMi300), chain)), Not(Finds("inefficient-kernels")));
}

TEST(InefficientKernelsTest, IsNotRaisedByAFormulaThatSavesNextToNothing) {
  EXPECT_THAT(Diagnose(With(ATraceOn(kMi300), AFormula(400, 100))), Not(Finds("inefficient-kernels")));
}

TEST(InefficientKernelsTest, IsNotRaisedByAFormulaWhereTheDeviceIsNotKnown) {
  record::RooflineChain chain = AFormula(700, 100);
  chain.fused_ns.reset();
  EXPECT_THAT(Diagnose(With(ATraceOn(""), chain)), Not(Finds("inefficient-kernels")));
}

TEST(InefficientKernelsTest, NamesTheFormulaAndNotOperatorsForWhichNoCureIsSure) {
  const Diagnosis diagnosis = Diagnose(
      With(With(ATraceOn(kMi300), AFormula(700, 100)), AProduct(3'000, 0.4, RooflineReason::kLowBandwidth)));
  ASSERT_THAT(diagnosis, FindsCause("inefficient-kernels", "elementwise-chain"));
  EXPECT_NEAR(FindingIn(diagnosis, "inefficient-kernels")->share, 0.06, 1e-9);
}

TEST(InefficientKernelsTest, TellsTheShapeButPromisesNothingWhereTheDeviceIsNotKnown) {
  const Diagnosis diagnosis =
      Diagnose(With(ATraceOn(""), AProduct(9'000, std::nullopt, RooflineReason::kMisaligned)));
  ASSERT_THAT(diagnosis, FindsCause("inefficient-kernels", "misaligned"));
  EXPECT_THAT(diagnosis, LeavesOpen("what the shapes cost"));
  EXPECT_EQ(FindingIn(diagnosis, "inefficient-kernels")->method, "");
}

TEST(InefficientKernelsTest, IsNotRaisedByAFifthOfTheStepWhereTheDeviceIsNotKnown) {
  EXPECT_THAT(Diagnose(With(ATraceOn(""), AProduct(2'000, std::nullopt, RooflineReason::kMisaligned))),
              Not(Finds("inefficient-kernels")));
}

}  // namespace
}  // namespace fullbore::diagnose
