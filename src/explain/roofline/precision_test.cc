#include "explain/roofline/precision.h"

#include <gtest/gtest.h>

namespace fullbore::roofline {
namespace {

const Device& Named(const char* name) {
  const Device* device = DeviceNamed(name);
  EXPECT_NE(device, nullptr);
  return *device;
}

// A product that takes 10 ms in float32, and so much arithmetic.
record::Roofline WithProduct(double flops, double bytes) {
  record::RooflineOperator product;
  product.count = 1;
  product.device_ns = 10'000'000;
  product.flops = flops;
  product.bytes = bytes;
  product.why = {{record::RooflineReason::kNoTensorCores, ""}};
  record::Roofline judged;
  judged.operators = {product};
  return judged;
}

TEST(LeftOnTensorCoresTest, ALargeProductIsBoundByThePeakOf16Bits) {
  const record::Roofline judged = WithProduct(150e9, 1e6);
  const auto left = LeftOnTensorCores(&judged, Named("Tesla V100-SXM2-16GB"));
  ASSERT_TRUE(left);
  EXPECT_NEAR((*left)[1], 150e9 / (125e12 * 0.35) / 0.010, 0.001);
  EXPECT_GT((*left)[0], (*left)[1]);
  EXPECT_LT((*left)[2], (*left)[1]);
}

TEST(LeftOnTensorCoresTest, AProductOfManyBytesGainsHalfOfThem) {
  const record::Roofline judged = WithProduct(1e9, 7e9);
  const auto left = LeftOnTensorCores(&judged, Named("Tesla V100-SXM2-16GB"));
  EXPECT_NEAR((*left)[1], 3.5e9 / (900e9 * 0.8) / 0.010, 0.001);
  EXPECT_DOUBLE_EQ((*left)[0], (*left)[2]) << "memory is the limit whatever the kernel reaches";
}

TEST(LeftOnTensorCoresTest, NothingBecomesSlower) {
  const record::Roofline judged = WithProduct(150e12, 1e6);
  EXPECT_LE((*LeftOnTensorCores(&judged, Named("Tesla V100-SXM2-16GB")))[0], 1);
}

TEST(LeftOnTensorCoresTest, WithoutShapesThePeaksTell) {
  const auto left = LeftOnTensorCores(nullptr, Named("Tesla V100-SXM2-16GB"));
  EXPECT_NEAR((*left)[0], 15.7 * 0.6 / (125 * 0.15), 1e-9);
}

}  // namespace
}  // namespace fullbore::roofline
