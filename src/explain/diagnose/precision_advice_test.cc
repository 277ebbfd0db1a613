#include "explain/diagnose/precision_advice.h"

#include <gmock/gmock.h>

#include "explain/diagnose/testing/a_run.h"
#include "explain/roofline/matrix_units.h"

namespace fullbore::diagnose {
namespace {

using record::MatrixUnits;
using testing::ATraining;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

PrecisionAdvice AdviceFor(const char* device, const char* framework = "torch") {
  Program program;
  program.framework = framework;
  return PrecisionAdviceFor(program, device, roofline::UnitsOfDevice(device)).value_or(PrecisionAdvice{});
}

TEST(PrecisionAdviceTest, Float16WithAGradScalerWhereTensorCoresKnowNothingElse) {
  for (const char* name : {"Tesla V100-SXM2-16GB", "Tesla T4", "NVIDIA GeForce RTX 2080 Ti"}) {
    const PrecisionAdvice advice = AdviceFor(name);
    EXPECT_THAT(advice.change, HasSubstr("torch.float16")) << name;
    EXPECT_THAT(advice.change, HasSubstr("GradScaler")) << name;
    EXPECT_THAT(advice.fix, Each(Not(HasSubstr("torch.bfloat16")))) << name;
    EXPECT_THAT(advice.fix, Each(Not(HasSubstr("set_float32_matmul_precision")))) << name;
  }
}

TEST(PrecisionAdviceTest, Bfloat16AndTf32FromComputeCapability8On) {
  const PrecisionAdvice advice = AdviceFor("NVIDIA A100-SXM4-40GB");
  EXPECT_THAT(advice.change, HasSubstr("torch.bfloat16"));
  EXPECT_THAT(advice.fix, Contains(HasSubstr("set_float32_matmul_precision")));
}

TEST(PrecisionAdviceTest, Bfloat16WithoutTf32OnMatrixCoresOfOthers) {
  for (const char* name : {"AMD Instinct MI210", "Intel(R) Data Center GPU Max 1550"}) {
    const PrecisionAdvice advice = AdviceFor(name);
    EXPECT_THAT(advice.change, HasSubstr("torch.bfloat16")) << name;
    EXPECT_THAT(advice.fix, Each(Not(HasSubstr("TF32")))) << name;
  }
  EXPECT_THAT(AdviceFor("Intel(R) Data Center GPU Max 1550").change, HasSubstr("\"xpu\""));
}

TEST(PrecisionAdviceTest, NothingForDevicesWithoutTensorCoresAndForUnknownOnes) {
  for (const char* name : {"Tesla P100-PCIE-16GB", "NVIDIA GeForce GTX 1080 Ti", "", "Some Accelerator"})
    EXPECT_TRUE(AdviceFor(name).fix.empty()) << name;
}

TEST(PrecisionAdviceTest, EachFrameworkHasItsOwnWords) {
  for (const char* framework : {"keras", "tensorflow", "jax"}) {
    const PrecisionAdvice advice = AdviceFor("NVIDIA A100-SXM4-40GB", framework);
    EXPECT_THAT(advice.change, HasSubstr("bfloat16")) << framework;
    EXPECT_THAT(advice.fix, Each(Not(HasSubstr("torch")))) << framework;
  }
}

TEST(PrecisionAdviceTest, TheDeviceIsThatOfTheJudgedRank) {
  record::Recording recording = ATraining();
  recording.machine["gpu0"] = "Tesla V100-SXM2-16GB";
  const View view(recording, recording.stages.front());
  EXPECT_EQ(NameOfDevice(view), "Tesla V100-SXM2-16GB");
  EXPECT_EQ(UnitsOf(view), MatrixUnits::kFloat16);
}

}  // namespace
}  // namespace fullbore::diagnose
