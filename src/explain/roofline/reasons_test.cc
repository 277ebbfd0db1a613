// Each reason on an operator that has it, and on a near miss that has not.
#include "explain/roofline/reasons.h"

#include <gmock/gmock.h>

#include "explain/roofline/testing/made_operators.h"

namespace fullbore::roofline {
namespace {

using record::Bound;
using record::RooflineReason;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using timeline::Lane;

// An operator on an H100 that takes 100 us and reaches `reached` of what is attainable.
Facts Made(std::string_view name, std::vector<OperatorInput> inputs, double reached = 0.2) {
  Facts facts;
  const OperatorShape shape = Called(name, std::move(inputs));
  facts.kind = shape.kind;
  facts.work = WorkOf(shape, name, {});
  facts.device = DeviceNamed("NVIDIA H100 80GB HBM3");
  facts.multiprocessors = 132;
  facts.blocks = 1000;
  facts.device_ns = 100'000;
  facts.attainable_ns = reached * facts.device_ns;
  facts.lane = facts.work.matrix ? Lane::kMatmulTensor : Lane::kElementwise;
  facts.bound = facts.work.matrix ? Bound::kCompute : Bound::kMemory;
  return facts;
}

Facts MadeProduct(int64_t m, int64_t n, int64_t k, ElementType type = kBf16) {
  return Made("aten::mm", {Tensor({m, k}, type), Tensor({k, n}, type)});
}

Facts MadeConvolution(std::vector<int64_t> input, std::vector<int64_t> weight, const char* groups = "1",
                      const char* dilation = "[1, 1]") {
  return Made("aten::convolution",
              {Tensor(std::move(input), kBf16), Tensor(std::move(weight), kBf16), Value(""), Value("[1, 1]"),
               Value("[1, 1]"), Value(dilation), Value("False"), Value("[0, 0]"), Value(groups)});
}

std::vector<std::string> Named(const Facts& facts) {
  std::vector<std::string> names;
  for (const auto& why : ReasonsFor(facts)) names.emplace_back(record::Name(why.reason));
  return names;
}

std::string Text(const Facts& facts, RooflineReason reason) {
  for (const auto& why : ReasonsFor(facts)) {
    if (why.reason == reason) return why.text;
  }
  return "";
}

TEST(ReasonsTest, NearItsLimitAnOperatorNeedsNone) {
  Facts facts = MadeProduct(4097, 4097, 4097);
  facts.attainable_ns = 0.8 * facts.device_ns;
  EXPECT_THAT(Named(facts), IsEmpty());
}

TEST(ReasonsTest, AWellShapedOperatorFarFromItsLimitHasNoneByItsShape) {
  EXPECT_THAT(Named(MadeProduct(4096, 4096, 4096)), IsEmpty());
}

TEST(ReasonsTest, FewerBlocksThanMultiprocessors) {
  Facts facts = MadeProduct(256, 512, 131072);
  facts.blocks = 8;
  EXPECT_THAT(Named(facts), ElementsAre("few-tiles"));
  EXPECT_EQ(Text(facts, RooflineReason::kFewTiles), "8 blocks for 132 multiprocessors");
  facts.blocks = 120;
  EXPECT_THAT(Named(facts), IsEmpty()) << "nearly all have one";
}

TEST(ReasonsTest, TilesAreCountedFromTheShapeWhereTheGridIsNotRecorded) {
  Facts facts = MadeProduct(256, 512, 131072);
  facts.blocks = 0;
  EXPECT_EQ(Text(facts, RooflineReason::kFewTiles), "8 tiles of 128 x 128 for 132 multiprocessors");
}

TEST(ReasonsTest, FewBlocksAreFewOnAnyDevice) {
  Facts facts = MadeProduct(256, 512, 131072);
  facts.device = nullptr;
  facts.attainable_ns.reset();
  facts.multiprocessors = 0;
  facts.blocks = 8;
  EXPECT_THAT(Named(facts), ElementsAre("few-tiles"));
  facts.blocks = 64;
  EXPECT_THAT(Named(facts), IsEmpty()) << "enough for a T4";
}

TEST(ReasonsTest, DimensionsThatAreNoMultiplesOf16Bytes) {
  EXPECT_EQ(Text(MadeProduct(4096, 4096, 4097), RooflineReason::kMisaligned),
            "4,097 is not a multiple of 8 elements (16 bytes)");
  EXPECT_THAT(Named(MadeProduct(4096, 4097, 4096)), ElementsAre("misaligned"));
  EXPECT_THAT(Named(MadeProduct(4097, 4096, 4096)), IsEmpty()) << "the number of rows does not matter";
  EXPECT_THAT(Named(MadeProduct(4096, 4096, 4100, kF32)), IsEmpty()) << "4 elements of float32 are 16 bytes";
}

TEST(ReasonsTest, TheRowsOfATransposedFactorMatter) {
  EXPECT_THAT(Named(Made("aten::mm", {Tensor({4097, 4096}, kBf16, {1, 4097}), Tensor({4096, 4096}, kBf16)})),
              ElementsAre("misaligned"));
}

TEST(ReasonsTest, ThinProducts) {
  EXPECT_THAT(Named(MadeProduct(16, 4096, 4096)), ElementsAre("thin-product"));
  EXPECT_THAT(Named(MadeProduct(128, 4096, 4096)), IsEmpty());
}

TEST(ReasonsTest, BatchesOfSmallProducts) {
  EXPECT_THAT(Named(Made("aten::bmm", {Tensor({9999, 32, 64}, kBf16), Tensor({9999, 64, 32}, kBf16)})),
              ElementsAre("small-products"));
  EXPECT_THAT(Named(Made("aten::bmm", {Tensor({99, 512, 64}, kBf16), Tensor({99, 64, 512}, kBf16)})),
              IsEmpty());
}

TEST(ReasonsTest, Float32OutsideOfTheTensorCoresIsSaidHoweverNearItsOwnLimit) {
  Facts facts = MadeProduct(4096, 4096, 4096, kF32);
  facts.lane = Lane::kMatmul;
  facts.attainable_ns = 0.95 * facts.device_ns;
  EXPECT_THAT(Text(facts, RooflineReason::kNoTensorCores), HasSubstr("TF32 or 16 bits"));
  facts.device = DeviceNamed("Tesla V100-SXM2-16GB");
  EXPECT_THAT(Text(facts, RooflineReason::kNoTensorCores), Not(HasSubstr("TF32"))) << "a V100 has none";
  facts.device = DeviceNamed("AMD Instinct MI300X");
  EXPECT_THAT(Named(facts), IsEmpty()) << "its matrix cores take float32";
  facts.device = DeviceNamed("NVIDIA H100 80GB HBM3");
  facts.bound = Bound::kMemory;
  EXPECT_THAT(Named(facts), IsEmpty()) << "tensor cores do not speed up memory";
}

TEST(ReasonsTest, ConvolutionsOfPicturesWithFewChannels) {
  EXPECT_THAT(Named(MadeConvolution({1, 3, 2048, 2048}, {64, 3, 7, 7})), ElementsAre("few-channels"));
  EXPECT_THAT(Named(MadeConvolution({1, 64, 512, 512}, {64, 64, 3, 3})), IsEmpty());
}

TEST(ReasonsTest, DepthwiseGroupedAndDilatedConvolutions) {
  EXPECT_THAT(Named(MadeConvolution({8, 1024, 32, 32}, {1024, 1, 3, 3}, "1024")), ElementsAre("depthwise"));
  EXPECT_THAT(Named(MadeConvolution({8, 256, 32, 32}, {256, 8, 3, 3}, "32")), ElementsAre("grouped"));
  EXPECT_THAT(Named(MadeConvolution({8, 256, 32, 32}, {256, 128, 3, 3}, "2")), IsEmpty());
  EXPECT_THAT(Named(MadeConvolution({8, 256, 32, 32}, {256, 256, 3, 3}, "1", "[4, 4]")),
              ElementsAre("dilated"));
}

TEST(ReasonsTest, ConvolutionsWithKernelsThatTurnTheLayout) {
  Facts facts = MadeConvolution({8, 256, 32, 32}, {256, 256, 3, 3});
  facts.converts_layout = true;
  EXPECT_THAT(Named(facts), ElementsAre("layout"));
}

TEST(ReasonsTest, ConvolutionsInTheOrderThatMatrixUnitsDoNotTake) {
  Facts facts = MadeConvolution({8, 256, 32, 32}, {256, 256, 3, 3});
  const auto in_order = [&](std::vector<int64_t> strides, ElementType type) {
    const OperatorInput input = Tensor({8, 256, 32, 32}, type, std::move(strides));
    facts.work = Counted("aten::convolution", {input, Tensor({256, 256, 3, 3}, type), Value(""),
                                               Value("[1, 1]"), Value("[1, 1]"), Value("[1, 1]")});
    return Named(facts);
  };
  EXPECT_THAT(in_order({262144, 1024, 32, 1}, kF16), ElementsAre("layout"));
  EXPECT_THAT(in_order({262144, 1, 8192, 256}, kF16), IsEmpty()) << "channels_last";
  EXPECT_THAT(in_order({262144, 1024, 32, 1}, kF32), IsEmpty()) << "float32 has fast kernels for either";
}

TEST(ReasonsTest, FusedAttentionFarFromItsLimit) {
  const auto tensor = Tensor({1, 32, 32768, 128}, kBf16);
  EXPECT_THAT(Text(Made("aten::_scaled_dot_product_flash_attention",
                        {tensor, tensor, tensor, Value("0."), Value("False")}),
                   RooflineReason::kAttentionSlow),
              HasSubstr("20 % of what the peak allows"));
}

TEST(ReasonsTest, AttentionAndNormalisationsMadeOfSingleOperators) {
  Facts facts = Made("aten::_softmax", {Tensor({8, 100, 100}), Value("-1")}, 0.9);
  facts.in_attention = true;
  EXPECT_THAT(Named(facts), ElementsAre("attention-unfused")) << "however well each kernel does its part";
  facts.in_attention = false;
  facts.in_normalisation = true;
  EXPECT_THAT(Named(facts), ElementsAre("normalisation-unfused"));
}

TEST(ReasonsTest, ChainsAndSmallKernels) {
  Facts facts = Made("aten::add", {Tensor({4096, 4096}), Tensor({4096, 4096})}, 0.9);
  facts.chain = 5;
  EXPECT_THAT(Text(facts, RooflineReason::kElementwiseChain), HasSubstr("one of 5 operators"));
  facts.chain = 0;
  facts.among_small = true;
  EXPECT_THAT(Named(facts), ElementsAre("small-kernels"));
}

TEST(ReasonsTest, WorkThatIsShorterThanAKernelIsTiny) {
  Facts facts = Made("aten::add", {Tensor({64}), Tensor({64})});
  facts.device_ns = 2000;
  facts.attainable_ns = 20;
  facts.blocks = 1;
  EXPECT_THAT(Named(facts), ElementsAre("tiny")) << "and its one block says nothing more";
  facts.chain = 4;
  EXPECT_THAT(Named(facts), ElementsAre("elementwise-chain"));
}

TEST(ReasonsTest, SlowKernelsForMemoryAreStridedOrSimplySlow) {
  EXPECT_THAT(Named(Made("aten::add",
                         {Tensor({4096, 4096}, kF32, {4096, 1}), Tensor({4096, 4096}, kF32, {1, 4096})})),
              ElementsAre("strided"));
  EXPECT_THAT(Named(Made("aten::add",
                         {Tensor({4096, 4096}, kF32, {1, 4096}), Tensor({4096, 4096}, kF32, {1, 4096})})),
              ElementsAre("low-bandwidth"));
}

TEST(ReasonsTest, WithoutADeviceOnlyTheShapeSpeaks) {
  Facts facts = Made("aten::add", {Tensor({4096, 4096}), Tensor({4096, 4096})});
  facts.device = nullptr;
  facts.attainable_ns.reset();
  EXPECT_THAT(Named(facts), IsEmpty()) << "nobody knows its bandwidth";
  facts = MadeProduct(4097, 4097, 4097);
  facts.device = nullptr;
  facts.attainable_ns.reset();
  EXPECT_THAT(Named(facts), ElementsAre("misaligned"));
}

TEST(ReasonsTest, WorkThatIsNotKnownHasNoReason) {
  EXPECT_THAT(Named(Made("aten::mm", {Tensor({4, 5}), Tensor({6, 7})})), IsEmpty());
}

}  // namespace
}  // namespace fullbore::roofline
