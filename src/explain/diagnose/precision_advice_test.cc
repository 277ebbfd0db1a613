#include "explain/diagnose/precision_advice.h"

#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using roofline::DeviceNamed;
using testing::ATraining;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PrecisionAdviceTest, Float16WithAGradScalerWhereTensorCoresKnowNothingElse) {
  for (const char* name : {"Tesla V100-SXM2-16GB", "Tesla T4"}) {
    const PrecisionAdvice advice = PrecisionAdviceFor(DeviceNamed(name));
    EXPECT_THAT(advice.change, HasSubstr("torch.float16")) << name;
    EXPECT_THAT(advice.change, HasSubstr("GradScaler")) << name;
    EXPECT_THAT(advice.fix, Each(Not(HasSubstr("torch.bfloat16")))) << name;
    EXPECT_THAT(advice.fix, Each(Not(HasSubstr("set_float32_matmul_precision")))) << name;
  }
}

TEST(PrecisionAdviceTest, Bfloat16AndTf32FromComputeCapability8On) {
  const PrecisionAdvice advice = PrecisionAdviceFor(DeviceNamed("NVIDIA A100-SXM4-40GB"));
  EXPECT_THAT(advice.change, HasSubstr("torch.bfloat16"));
  EXPECT_THAT(advice.fix, Contains(HasSubstr("set_float32_matmul_precision")));
}

TEST(PrecisionAdviceTest, Bfloat16WithoutTf32OnMatrixCoresOfAmd) {
  const PrecisionAdvice advice = PrecisionAdviceFor(DeviceNamed("AMD Instinct MI210"));
  EXPECT_THAT(advice.change, HasSubstr("torch.bfloat16"));
  EXPECT_THAT(advice.fix, Each(Not(HasSubstr("TF32"))));
}

TEST(PrecisionAdviceTest, SaysWhatDependsOnADeviceThatIsNotKnown) {
  EXPECT_THAT(PrecisionAdviceFor(nullptr).fix, Contains(HasSubstr("before compute capability 8.0")));
}

TEST(PrecisionAdviceTest, TheDeviceIsThatOfTheJudgedRank) {
  record::Recording recording = ATraining();
  recording.machine["gpu0"] = "Tesla V100-SXM2-16GB";
  const View view(recording, recording.stages.front());
  ASSERT_NE(DeviceOf(view), nullptr);
  EXPECT_EQ(DeviceOf(view)->capability, 70);
}

}  // namespace
}  // namespace fullbore::diagnose
