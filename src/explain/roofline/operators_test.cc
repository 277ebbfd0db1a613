// The work of each family of operators, counted by hand.
#include "explain/roofline/operators.h"

#include <gmock/gmock.h>

#include <cmath>

#include "explain/roofline/testing/made_operators.h"

namespace fullbore::roofline {
namespace {

using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::Field;
using ::testing::Optional;

// The operations and bytes of one call.
auto Takes(double flops, double bytes) {
  return AllOf(Field(&Work::flops, Optional(DoubleEq(flops))),
               Field(&Work::bytes, Optional(DoubleEq(bytes))));
}

// ---- matrix products ----

TEST(MatrixTest, AProductTakesTwoOperationsForEachPairOfFactors) {
  EXPECT_THAT(Counted("aten::mm", {Tensor({4, 8}, kBf16), Tensor({8, 2}, kBf16)}),
              Takes(2 * 4 * 8 * 2, 2 * (4 * 8 + 8 * 2 + 4 * 2)));
}

TEST(MatrixTest, WhatIsAddedIsReadAndAddedOnce) {
  EXPECT_THAT(Counted("aten::addmm", {Tensor({2}), Tensor({4, 8}), Tensor({8, 2}), Value("1")}),
              Takes(2 * 4 * 8 * 2 + 4 * 2, 4 * (2 + 4 * 8 + 8 * 2 + 4 * 2)));
  EXPECT_THAT(Counted("aten::baddbmm", {Tensor({3, 4, 2}), Tensor({3, 4, 8}), Tensor({3, 8, 2})}),
              Takes(3 * (2 * 4 * 8 * 2 + 4 * 2), 4 * 3 * (4 * 2 + 4 * 8 + 8 * 2 + 4 * 2)));
}

TEST(MatrixTest, BatchesMultiplyAndABroadcastFactorIsReadOnce) {
  EXPECT_THAT(Counted("aten::bmm", {Tensor({3, 4, 8}), Tensor({3, 8, 2})}),
              Takes(3 * 2 * 4 * 8 * 2, 4 * 3 * (4 * 8 + 8 * 2 + 4 * 2)));
  EXPECT_THAT(Counted("aten::matmul", {Tensor({5, 3, 4, 8}), Tensor({8, 2})}),
              Takes(15 * 2 * 4 * 8 * 2, 4 * (15 * 4 * 8 + 8 * 2 + 15 * 4 * 2)));
  EXPECT_THAT(Counted("aten::bmm", {Tensor({3, 4, 8}, kF32, {0, 8, 1}), Tensor({3, 8, 2})}),
              Takes(3 * 2 * 4 * 8 * 2, 4 * (4 * 8 + 3 * 8 * 2 + 3 * 4 * 2)));
}

TEST(MatrixTest, ALinearLayerTakesItsWeightByRows) {
  EXPECT_THAT(Counted("aten::linear", {Tensor({5, 4, 8}), Tensor({2, 8}), Tensor({2})}),
              Takes(20 * (2 * 8 * 2 + 2), 4 * (20 * 8 + 2 * 8 + 2 + 20 * 2)));
}

TEST(MatrixTest, VectorsAreMatricesOfOneColumn) {
  EXPECT_THAT(Counted("aten::mv", {Tensor({4, 8}), Tensor({8})}), Takes(2 * 4 * 8, 4 * (4 * 8 + 8 + 4)));
  EXPECT_THAT(Counted("aten::dot", {Tensor({8}), Tensor({8})}), Takes(2 * 8, 4 * (8 + 8 + 1)));
}

TEST(MatrixTest, Float8IsReadAsBytesAndWrittenIn16Bits) {
  const auto f8 = ElementType::kFloat8;
  EXPECT_THAT(
      Counted("aten::_scaled_mm", {Tensor({4, 16}, f8), Tensor({16, 2}, f8), Tensor({1}), Tensor({1})}),
      Takes(2 * 4 * 16 * 2, 4 * 16 + 16 * 2 + 2 * 4 * 2));
}

TEST(MatrixTest, FactorsThatDoNotFitAreNotCounted) {
  EXPECT_EQ(Counted("aten::mm", {Tensor({4, 8}), Tensor({7, 2})}).flops, std::nullopt);
  EXPECT_EQ(Counted("aten::mm", {Tensor({4, 8})}).flops, std::nullopt);
  EXPECT_EQ(Counted("aten::addmm", {}).flops, std::nullopt);
}

TEST(MatrixTest, TheLargestSizesThatAreReadDoNotOverflow) {
  constexpr int64_t kHuge = int64_t{1} << 25;
  const Work work = Counted("aten::mm", {Tensor({kHuge, kHuge}), Tensor({kHuge, kHuge})});
  EXPECT_THAT(work.flops, Optional(DoubleEq(std::pow(2.0, 76))));
  EXPECT_THAT(work.bytes, Optional(DoubleEq(3 * std::pow(2.0, 52))));
}

TEST(MatrixTest, ExpertsAreReadOnceEachAndMultiplyTheTokensThatChoseThem) {
  // 6 tokens of 8 numbers, 4 experts: 8 -> 2 x 5, 5 -> 8, two of them for each token.
  const auto inputs = {Tensor({6, 8}, kBf16), Tensor({4, 10, 8}, kBf16), Tensor({4, 8, 5}, kBf16),
                       Tensor({6, 2})};
  EXPECT_THAT(Counted("vllm::fused_moe", inputs),
              Takes(2 * 6 * 2 * (10 * 8 + 8 * 5), 2 * (2 * 6 * 8 + 4 * (10 * 8 + 8 * 5)) + 4 * 12));
}

// ---- convolutions ----

std::vector<OperatorInput> Convolved(OperatorInput input, OperatorInput weight, const char* stride,
                                     const char* padding, const char* dilation = "[1, 1]",
                                     const char* transposed = "False", const char* groups = "1") {
  return {std::move(input), std::move(weight), Value(""),       Value(stride), Value(padding),
          Value(dilation),  Value(transposed), Value("[0, 0]"), Value(groups)};
}

TEST(ConvolutionTest, EachResultTakesTheWholeKernelOfAllChannels) {
  // (8 + 2 x 1 - 3) / 2 + 1 = 4
  EXPECT_THAT(Counted("aten::convolution",
                      Convolved(Tensor({2, 16, 8, 8}), Tensor({32, 16, 3, 3}), "[2, 2]", "[1, 1]")),
              Takes(2.0 * 2 * 32 * 16 * (16 * 9), 4 * (2 * 16 * 64 + 32 * 16 * 9 + 2 * 32 * 16)));
}

TEST(ConvolutionTest, TuplesMeanTheSameAsLists) {
  EXPECT_THAT(Counted("aten::convolution", Convolved(Tensor({1, 3, 2048, 2048}), Tensor({64, 3, 7, 7}),
                                                     "(2,2)", "(3,3)", "(1,1)")),
              Takes(19'730'006'016, 318'804'736));
}

TEST(ConvolutionTest, DilationSpreadsTheKernel) {
  // 8 - 2 x (3 - 1) = 4
  EXPECT_THAT(Counted("aten::convolution",
                      Convolved(Tensor({1, 1, 8, 8}), Tensor({1, 1, 3, 3}), "[1, 1]", "[0, 0]", "[2, 2]")),
              Takes(2 * 16 * 9, 4 * (64 + 9 + 16)));
}

TEST(ConvolutionTest, GroupsSeeOnlyTheirOwnChannels) {
  const Work work = Counted("aten::convolution", Convolved(Tensor({8, 1024, 32, 32}), Tensor({1024, 1, 3, 3}),
                                                           "[1, 1]", "[1, 1]", "[1, 1]", "False", "1024"));
  EXPECT_THAT(work, Takes(150'994'944, 67'145'728));
  const auto& form = std::get<Convolution>(work.form);
  EXPECT_EQ(form.groups, 1024);
  EXPECT_EQ(form.in_channels / form.groups, 1);
}

TEST(ConvolutionTest, ATransposedOneUsesItsKernelForEachPixelOfTheInput) {
  // (8 - 1) x 2 - 2 + 3 + 1 = 16
  EXPECT_THAT(Counted("aten::convolution", Convolved(Tensor({4, 512, 8, 8}), Tensor({512, 256, 4, 4}),
                                                     "[2, 2]", "[1, 1]", "[1, 1]", "True")),
              Takes(1'073'741'824, 4.0 * (4 * 512 * 64 + 512 * 256 * 16 + 4 * 256 * 256)));
}

TEST(ConvolutionTest, GradientsTakeTheWorkOfTheForwardPassEach) {
  const std::vector<OperatorInput> inputs = {Tensor({2, 32, 4, 4}),
                                             Tensor({2, 16, 8, 8}),
                                             Tensor({32, 16, 3, 3}),
                                             Value("[32]"),
                                             Value("[2, 2]"),
                                             Value("[1, 1]"),
                                             Value("[1, 1]"),
                                             Value("False"),
                                             Value("[0, 0]"),
                                             Value("1"),
                                             Value("[True, True, False]")};
  const double forward = 2.0 * 2 * 32 * 16 * (16 * 9);
  const double result = 2 * 32 * 16, input = 2 * 16 * 64, weight = 32 * 16 * 9;
  EXPECT_THAT(Counted("aten::convolution_backward", inputs),
              Takes(2 * forward, 4 * (result + 2 * input + 2 * weight)));
  auto only_weight = inputs;
  only_weight[10].concrete = "[False, True, False]";
  EXPECT_THAT(Counted("aten::convolution_backward", only_weight),
              Takes(forward, 4 * (result + input + weight)));
}

TEST(ConvolutionTest, TheOldGradientsAreThoseThatWereSeen) {
  const std::vector<OperatorInput> inputs = {Tensor({2, 16, 8, 8}), Tensor({2, 32, 4, 4}),
                                             Tensor({32, 16, 3, 3})};
  const double forward = 2.0 * 2 * 32 * 16 * (16 * 9);
  Context context;
  EXPECT_THAT(Counted("aten::cudnn_convolution_backward", inputs, context).flops,
              Optional(DoubleEq(2 * forward)));
  context.gradients = kGradWeight;
  EXPECT_THAT(Counted("aten::cudnn_convolution_backward", inputs, context).flops,
              Optional(DoubleEq(forward)));
}

TEST(ConvolutionTest, WithoutStridesTheGradientsTellTheSizeOfTheResult) {
  const std::vector<OperatorInput> inputs = {Tensor({2, 16, 8, 8}), Tensor({32, 16, 3, 3})};
  EXPECT_EQ(Counted("aten::convolution", inputs).flops, std::nullopt);
  ConvolutionResults results;
  const auto backward = [&](int64_t size) {
    Learn(Called("aten::cudnn_convolution_backward",
                 {Tensor({2, 16, 8, 8}), Tensor({2, 32, size, size}), Tensor({32, 16, 3, 3})}),
          "aten::cudnn_convolution_backward", &results);
  };
  backward(4);
  Context context;
  context.convolution_results = &results;
  EXPECT_THAT(Counted("aten::convolution", inputs, context).flops,
              Optional(DoubleEq(2.0 * 2 * 32 * 16 * 16 * 9)));
  backward(8);
  EXPECT_EQ(Counted("aten::convolution", inputs, context).flops, std::nullopt)
      << "two layers with different strides";
}

TEST(ConvolutionTest, ImpossibleStridesAreNotCounted) {
  for (const char* stride : {"[0, 0]", "[-1, 1]", "[100, 9223372036854775807]", "many"}) {
    const Work work =
        Counted("aten::convolution", Convolved(Tensor({1, 1, 8, 8}), Tensor({1, 1, 3, 3}), stride, "[0, 0]"));
    EXPECT_TRUE(!work.flops || *work.flops <= 2 * 9 * 8) << stride;
  }
  EXPECT_EQ(
      Counted("aten::convolution", Convolved(Tensor({1, 1, 2, 2}), Tensor({1, 1, 3, 3}), "[1, 1]", "[0, 0]"))
          .flops,
      std::nullopt)
      << "a kernel larger than the picture";
}

// ---- attention ----

TEST(AttentionTest, TwoProductsForEachPairOfQueryAndKey) {
  const std::vector<OperatorInput> inputs = {Tensor({2, 4, 10, 8}, kBf16), Tensor({2, 4, 6, 8}, kBf16),
                                             Tensor({2, 4, 6, 8}, kBf16), Value("0."), Value("False")};
  EXPECT_THAT(Counted("aten::_scaled_dot_product_flash_attention", inputs),
              Takes(2 * 4 * (10 * 6) * (2 * 8 + 2 * 8), 2 * 2 * 4 * 8 * (10 + 6 + 6 + 10)));
}

TEST(AttentionTest, ACausalQuerySeesTheKeysUpToItself) {
  const std::vector<OperatorInput> inputs = {Tensor({1, 1, 10, 8}), Tensor({1, 1, 10, 8}),
                                             Tensor({1, 1, 10, 8}), Value("0."), Value("True")};
  EXPECT_THAT(Counted("aten::_scaled_dot_product_flash_attention", inputs).flops,
              Optional(DoubleEq(55 * 4 * 8)));
}

TEST(AttentionTest, SharedKeysAreReadOnce) {
  const std::vector<OperatorInput> inputs = {Tensor({1, 8, 4, 16}, kF16), Tensor({1, 2, 4, 16}, kF16),
                                             Tensor({1, 2, 4, 16}, kF16), Value("0."), Value("False")};
  EXPECT_THAT(Counted("aten::_scaled_dot_product_flash_attention", inputs),
              Takes(8 * 16 * 4 * 16, 2 * 4 * 16 * (8 + 2 + 2 + 8)));
}

TEST(AttentionTest, FlashAttnPutsTheLengthBeforeTheHeads) {
  const std::vector<OperatorInput> inputs = {Tensor({1, 10, 2, 8}, kF16),
                                             Tensor({1, 10, 2, 8}, kF16),
                                             Tensor({1, 10, 2, 8}, kF16),
                                             Value("0."),
                                             Value("0.1"),
                                             Value("True")};
  EXPECT_THAT(Counted("flash_attn::_flash_attn_forward", inputs).flops, Optional(DoubleEq(2 * 55 * 4 * 8)));
}

TEST(AttentionTest, TheBackwardPassComputesTheScoresAgain) {
  std::vector<OperatorInput> inputs(12);
  for (size_t i = 0; i < 5; ++i) inputs[i] = Tensor({1, 1, 10, 8}, kF16);
  inputs[11] = Value("False");
  EXPECT_THAT(Counted("aten::_scaled_dot_product_flash_attention_backward", inputs),
              Takes(2.5 * 100 * 4 * 8, 2 * 80 * (3 + 1 + 1 + 3)));
}

// ---- work for memory ----

TEST(ElementwiseTest, EachTensorIsReadOnceAndTheResultWritten) {
  EXPECT_THAT(Counted("aten::add", {Tensor({4, 8}), Tensor({4, 8}), Value("1")}), Takes(32, 3 * 32 * 4));
  EXPECT_THAT(Counted("aten::neg", {Tensor({4, 8}, kBf16)}), Takes(32, 2 * 32 * 2));
}

TEST(ElementwiseTest, ASmallTensorIsExpandedWithoutBeingReadAgain) {
  EXPECT_THAT(Counted("aten::mul", {Tensor({4, 8}), Tensor({4, 1})}), Takes(32, 4 * (32 + 4 + 32)));
  EXPECT_THAT(Counted("aten::mul", {Tensor({8}), Tensor({4, 8})}), Takes(32, 4 * (8 + 32 + 32)));
  EXPECT_THAT(Counted("aten::mul", {Tensor({4, 8}, kF32, {0, 1}), Tensor({4, 8}, kF32, {8, 1})}),
              Takes(32, 4 * (8 + 32 + 32)));
}

TEST(ElementwiseTest, TypesArePromotedAndComparisonsGiveBools) {
  EXPECT_THAT(Counted("aten::add", {Tensor({8}, kBf16), Tensor({8}, kF32)}), Takes(8, 8 * (2 + 4 + 4)));
  EXPECT_THAT(Counted("aten::mul", {Tensor({8}, kF16), Tensor({8}, kBf16)}), Takes(8, 8 * (2 + 2 + 4)));
  EXPECT_THAT(Counted("aten::div", {Tensor({8}, kI64), Tensor({8}, kI64)}), Takes(8, 8 * (8 + 8 + 4)));
  EXPECT_THAT(Counted("aten::lt", {Tensor({8}), Tensor({8})}), Takes(8, 8 * (4 + 4 + 1)));
}

TEST(ElementwiseTest, InPlaceTheResultHasTheTypeOfTheFirst) {
  EXPECT_THAT(Counted("aten::add_", {Tensor({8}, kBf16), Tensor({8}, kF32)}), Takes(8, 8 * (2 + 4 + 2)));
}

TEST(ElementwiseTest, TensorsThatDoNotFitAreNotCounted) {
  EXPECT_EQ(Counted("aten::add", {Tensor({4}), Tensor({3})}).bytes, std::nullopt);
  EXPECT_EQ(Counted("aten::add", {Tensor({4}, ElementType::kUnknown), Tensor({4})}).bytes, std::nullopt);
  EXPECT_EQ(Counted("aten::add", {Value("1"), Value("2")}).bytes, std::nullopt);
  constexpr int64_t kLong = int64_t{1} << 40;
  EXPECT_EQ(Counted("aten::add", {Tensor({kLong, 1}), Tensor({1, kLong})}).bytes, std::nullopt)
      << "2^80 results";
}

TEST(ElementwiseTest, TensorsInDifferentOrdersAreStrided) {
  const auto strided = [](std::vector<int64_t> a, std::vector<int64_t> b) {
    return Counted("aten::add", {Tensor({4, 8}, kF32, std::move(a)), Tensor({4, 8}, kF32, std::move(b))})
        .strided;
  };
  EXPECT_FALSE(strided({8, 1}, {8, 1}));
  EXPECT_FALSE(strided({1, 4}, {1, 4})) << "both by columns";
  EXPECT_TRUE(strided({8, 1}, {1, 4}));
  EXPECT_TRUE(strided({16, 2}, {16, 2})) << "every other element";
}

TEST(CopyTest, ACastReadsOneTypeAndWritesTheOther) {
  EXPECT_THAT(Counted("aten::copy_", {Tensor({8}, kF32), Tensor({8}, kBf16), Value("False")}),
              Takes(0, 8 * (4 + 2)));
  EXPECT_THAT(Counted("aten::fill_", {Tensor({8}, kF32), Value("0")}), Takes(0, 8 * 4));
}

TEST(CopyTest, ConcatenatedTensorsHaveTheSizeThatTheKernelNames) {
  EXPECT_EQ(Counted("aten::cat", {List(2, 100), Value("1")}).bytes, std::nullopt);
  Context context;
  context.list_type =
      TypeInKernelName("CatArrayBatchedCopy<at::native::OpaqueType<2u>, unsigned int, 4, 64, 64>");
  EXPECT_THAT(Counted("aten::cat", {List(2, 100), Value("1")}, context), Takes(0, 2 * 100 * 2));
}

TEST(LookupTest, OnlyTheRowsAskedForAreRead) {
  EXPECT_THAT(Counted("aten::embedding", {Tensor({1000, 16}), Tensor({3, 5}, kI64)}),
              Takes(0, 15 * 8 + 2 * 15 * 16 * 4));
  EXPECT_THAT(Counted("aten::index_select", {Tensor({1000, 16}), Value("0"), Tensor({15}, kI64)}),
              Takes(0, 15 * 8 + 2 * 15 * 16 * 4));
  EXPECT_THAT(Counted("aten::index_select", {Tensor({4, 1000}), Value("-1"), Tensor({15}, kI64)}),
              Takes(0, 15 * 8 + 2 * 15 * 4 * 4));
}

TEST(LookupTest, TheGradientOfATableIsWrittenAsAWhole) {
  EXPECT_THAT(
      Counted("aten::embedding_dense_backward", {Tensor({3, 5, 16}), Tensor({3, 5}, kI64), Value("1000")}),
      Takes(15 * 16, 15 * 16 * 4 + 15 * 8 + 1000 * 16 * 4));
}

TEST(NormalisationTest, TheTensorIsReadAndWrittenOnce) {
  EXPECT_THAT(Counted("aten::native_layer_norm", {Tensor({4, 16}, kBf16), Value(""), Tensor({16}, kBf16),
                                                  Tensor({16}, kBf16), Value("")}),
              Takes(5 * 64, 2 * (2 * 64 + 2 * 16)));
  EXPECT_THAT(Counted("aten::native_layer_norm_backward",
                      {Tensor({4, 16}), Tensor({4, 16}), Value(""), Tensor({4, 1}), Tensor({4, 1}),
                       Tensor({16}), Tensor({16})}),
              Takes(10 * 64, 4 * (3 * 64 + 2 * 4 + 2 * 16)));
}

TEST(NormalisationTest, SoftmaxMayWidenItsResult) {
  EXPECT_THAT(Counted("aten::_softmax", {Tensor({4, 16}, kF16), Value("-1"), Value("False")}),
              Takes(5 * 64, 2 * 2 * 64));
  EXPECT_THAT(Counted("aten::_log_softmax", {Tensor({4, 16}, kF16), Value("-1"), Value("True")}),
              Takes(5 * 64, (2 + 4) * 64));
  EXPECT_THAT(Counted("aten::_softmax_backward_data", {Tensor({4, 16}), Tensor({4, 16})}),
              Takes(10 * 64, 3 * 4 * 64));
}

TEST(ReductionTest, TheDimensionsThatRemainAreWritten) {
  EXPECT_THAT(Counted("aten::mean", {Tensor({4, 16}), Value("[-1]"), Value("True")}),
              Takes(64, 4 * (64 + 4)));
  EXPECT_THAT(Counted("aten::sum", {Tensor({4, 16}), Value("[0, 1]"), Value("False")}),
              Takes(64, 4 * (64 + 1)));
  EXPECT_THAT(Counted("aten::sum", {Tensor({4, 16})}), Takes(64, 4 * (64 + 1)));
  EXPECT_THAT(Counted("aten::sum", {Tensor({4, 16}), Value("")}), Takes(64, 4 * 64))
      << "not recorded over what";
  EXPECT_THAT(Counted("aten::max", {Tensor({8}), Tensor({8})}), Takes(8, 3 * 8 * 4)) << "of two tensors";
}

TEST(OptimizerTest, StatesAreReadAndWrittenAndGradientsOnlyRead) {
  Context context;
  context.list_type = kF32;
  const auto lists = {List(3, 100), List(3, 100), List(3, 100), List(3, 100), List(0, 0), List(3, 3)};
  EXPECT_THAT(Counted("aten::_fused_adamw_", lists, context), Takes(12 * 100, 4 * 100 * (4 + 3)));
  EXPECT_THAT(Counted("aten::_fused_sgd_", {List(3, 100), List(3, 100), List(0, 0)}, context),
              Takes(4 * 100, 4 * 100 * (2 + 1)));
  EXPECT_THAT(Counted("aten::_foreach_add_", {List(3, 100), List(3, 100)}, context),
              Takes(100, 4 * 100 * (2 + 1)));
  EXPECT_THAT(Counted("aten::_foreach_norm", {List(3, 100)}, context), Takes(100, 4 * 100));
  EXPECT_EQ(Counted("aten::_foreach_add_", {List(3, 100), List(3, 100)}).bytes, std::nullopt)
      << "of unknown type";
}

TEST(CompiledTest, AKernelThatWasCompiledMovesItsArguments) {
  const Work work = Counted("triton_poi_fused_add_0", {Tensor({64}, kBf16), Tensor({64}, kF32), Value("64")});
  EXPECT_THAT(work.bytes, Optional(DoubleEq(64 * 6)));
  EXPECT_EQ(work.flops, std::nullopt);
}

TEST(KernelNameTest, TellsTheTypeOfListsOfTensors) {
  EXPECT_EQ(
      TypeInKernelName("multi_tensor_apply_kernel<TensorListMetadata<4>, FusedAdamMathFunctor<float, 4>"),
      kF32);
  EXPECT_EQ(
      TypeInKernelName("multi_tensor_apply_kernel<..., BinaryOpListAlphaFunctor<c10::BFloat16, 2, 2, 0>"),
      kBf16);
  EXPECT_EQ(TypeInKernelName("my_kernel"), ElementType::kUnknown);
}

TEST(ShapeTextTest, NamesTensorsAndSumsUpLists) {
  EXPECT_EQ(ShapeText(Called("aten::addmm", {Tensor({8}), Tensor({4, 16}), Tensor({16, 8}), Value("1")})),
            "(8) x (4, 16) x (16, 8)");
  EXPECT_EQ(ShapeText(Called("aten::cat", {List(2, 1234)})), "2 tensors of 1,234");
}

}  // namespace
}  // namespace fullbore::roofline
