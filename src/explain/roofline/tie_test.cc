#include "explain/roofline/tie.h"

#include <gmock/gmock.h>

#include "explain/roofline/testing/made_trace.h"
#include "explain/roofline/work.h"

namespace fullbore::roofline {
namespace {

using timeline::kNone;

// The name of the operator that each kernel belongs to, "-" for none.
std::vector<std::string> Owners(MadeTrace& made) {
  const timeline::DeviceTrace& trace = made.Finish();
  const Tied tied = Tie(trace);
  std::vector<std::string> owners;
  for (const uint32_t call : tied.call_of_op) {
    owners.emplace_back(
        call == kNone ? "-" : trace.names[trace.operators.shapes[trace.operators.calls[call].shape].name]);
  }
  return owners;
}

using ::testing::ElementsAre;

TEST(TieTest, AKernelBelongsToTheInnermostOperatorAroundItsLaunch) {
  MadeTrace made;
  made.Op("aten::matmul", 0, 100)
      .Op("aten::mm", 10, 50)
      .Kernel("gemm", 20, 200, 10)
      .Kernel("other", 70, 220, 10);
  made.Kernel("outside", 150, 240, 10);
  EXPECT_THAT(Owners(made), ElementsAre("aten::mm", "aten::matmul", "-"));
}

TEST(TieTest, ThreadsAreKeptApart) {
  MadeTrace made;
  made.Op("aten::mm", 0, 100).OnThread(1).Op("aten::add", 0, 100).Kernel("add", 50, 200, 10).OnThread(0);
  made.Kernel("gemm", 60, 220, 10);
  EXPECT_THAT(Owners(made), ElementsAre("aten::add", "aten::mm"));
}

TEST(TieTest, KernelsWithoutALaunchBelongToNothing) {
  MadeTrace made;
  made.Op("aten::mm", 0, 100).Orphan("gemm", 10, 10);
  EXPECT_THAT(Owners(made), ElementsAre("-"));
}

TEST(TieTest, AnOperatorWhoseWorkIsDoneInsideIsCovered) {
  MadeTrace made;
  made.Op("aten::matmul", 0, 100)
      .Op("aten::mm", 10, 40)
      .Kernel("gemm", 20, 200, 10)
      .Kernel("memset", 60, 220, 1);
  const Tied tied = Tie(made.Finish());
  EXPECT_TRUE(tied.calls[0].covered);
  EXPECT_FALSE(tied.calls[1].covered);
  EXPECT_EQ(tied.calls[1].parent, 0U);
}

TEST(TieTest, WorkOfAnotherKindInsideDoesNotCover) {
  MadeTrace made;
  made.Op("aten::convolution", 0, 100)
      .Kernel("conv", 10, 200, 50)
      .Op("aten::add_", 50, 40)
      .Kernel("bias", 60, 260, 5);
  const Tied tied = Tie(made.Finish());
  EXPECT_FALSE(tied.calls[0].covered);
}

TEST(TieTest, AnOperatorInsideThatLaunchesNothingDoesNotCover) {
  MadeTrace made;
  made.Op("aten::linear", 0, 100).Op("aten::addmm", 10, 20).Kernel("gemm", 50, 200, 10);
  EXPECT_FALSE(Tie(made.Finish()).calls[0].covered);
}

TEST(TieTest, GradientsOfOldConvolutionsAreTheirParents) {
  MadeTrace made;
  made.Op("aten::cudnn_convolution_backward", 0, 100);
  made.Op("aten::cudnn_convolution_backward_weight", 50, 40).Kernel("wgrad", 60, 200, 10);
  const Tied tied = Tie(made.Finish());
  EXPECT_EQ(tied.call_of_op[0], 0U);
  EXPECT_EQ(tied.calls[0].gradients, kGradWeight);
  EXPECT_FALSE(tied.calls[0].covered);
}

TEST(TieTest, WhatIsInsideOfPlainAttentionKnowsIt) {
  MadeTrace made;
  made.Op("aten::_scaled_dot_product_attention_math", 0, 100)
      .Op("aten::matmul", 10, 40)
      .Op("aten::bmm", 15, 20);
  made.Kernel("gemm", 20, 200, 10).Op("aten::_softmax", 60, 20).Kernel("softmax", 65, 220, 10);
  made.Op("aten::bmm", 150, 20).Kernel("gemm", 160, 300, 10);
  const Tied tied = Tie(made.Finish());
  EXPECT_TRUE(tied.calls[0].covered) << "the products count, not the attention";
  EXPECT_TRUE(tied.calls[2].in_attention);
  EXPECT_TRUE(tied.calls[3].in_attention);
  EXPECT_FALSE(tied.calls[4].in_attention);
}

TEST(TieTest, DeepNestingIsWalkedInLinearTime) {
  MadeTrace made;
  constexpr int kDepth = 200'000;
  for (int i = 0; i < kDepth; ++i) made.Op("aten::mm", i, 2 * (kDepth - i));
  for (int i = 0; i < kDepth; ++i) made.Kernel("gemm", i, 2 * kDepth + i, 1);
  const Tied tied = Tie(made.Finish());
  EXPECT_EQ(tied.call_of_op[kDepth - 1], static_cast<uint32_t>(kDepth - 1));
  EXPECT_TRUE(tied.calls[0].covered);
  EXPECT_FALSE(tied.calls[kDepth - 1].covered);
}

}  // namespace
}  // namespace fullbore::roofline
