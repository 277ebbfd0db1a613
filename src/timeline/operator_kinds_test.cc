#include "timeline/operator_kinds.h"

#include <gtest/gtest.h>

namespace fullbore::timeline {
namespace {

TEST(OperatorKindsTest, NamesOfAtenAreKnownWithAndWithoutTheUnderscoreOfInPlaceForms) {
  EXPECT_EQ(KindOfOperator("aten::addmm"), OperatorKind::kMatrix);
  EXPECT_EQ(KindOfOperator("aten::addmm_"), OperatorKind::kMatrix);
  EXPECT_EQ(KindOfOperator("aten::relu_"), OperatorKind::kElementwise);
  EXPECT_EQ(KindOfOperator("aten::mul"), OperatorKind::kElementwise);
  EXPECT_EQ(KindOfOperator("aten::copy_"), OperatorKind::kCopy);
  EXPECT_EQ(KindOfOperator("aten::_foreach_addcdiv_"), OperatorKind::kOptimizer);
  EXPECT_EQ(KindOfOperator("aten::_fused_adamw_"), OperatorKind::kOptimizer);
}

TEST(OperatorKindsTest, BagsAndWritesByIndexGoOverTables) {
  EXPECT_EQ(KindOfOperator("aten::_embedding_bag"), OperatorKind::kTable);
  EXPECT_EQ(KindOfOperator("aten::_embedding_bag_dense_backward"), OperatorKind::kTable);
  EXPECT_EQ(KindOfOperator("aten::_index_put_impl_"), OperatorKind::kTable);
  EXPECT_TRUE(ConcretesMatter(OperatorKind::kTable));
}

TEST(OperatorKindsTest, OperatorsThatLeaveTheWorkToOthersAreNotKept) {
  for (const char* name : {"aten::conv2d", "aten::layer_norm", "aten::to", "aten::view", "aten::empty",
                           "aten::scaled_dot_product_attention", "AddmmBackward0", "aten::copy", ""}) {
    EXPECT_EQ(KindOfOperator(name), OperatorKind::kNone) << name;
  }
}

TEST(OperatorKindsTest, LibrariesRegisterOperatorsOfTheirOwn) {
  EXPECT_EQ(KindOfOperator("vllm::rocm_aiter_fused_moe"), OperatorKind::kMoe);
  EXPECT_EQ(KindOfOperator("vllm::outplace_fused_experts"), OperatorKind::kMoe);
  EXPECT_EQ(KindOfOperator("_C::fused_add_rms_norm"), OperatorKind::kNormalisation);
  EXPECT_EQ(KindOfOperator("flash_attn::_flash_attn_forward"), OperatorKind::kAttention);
  EXPECT_EQ(KindOfOperator("triton_poi_fused_add_mul_0"), OperatorKind::kTriton);
  EXPECT_EQ(KindOfOperator("mine::scale"), OperatorKind::kNone);
}

TEST(OperatorKindsTest, AnUnderscoreAtTheEndMeansInPlaceButTwoBelongToTheName) {
  EXPECT_TRUE(IsInPlace("aten::add_"));
  EXPECT_FALSE(IsInPlace("aten::add"));
  EXPECT_FALSE(IsInPlace("aten::__and__"));
}

}  // namespace
}  // namespace fullbore::timeline
