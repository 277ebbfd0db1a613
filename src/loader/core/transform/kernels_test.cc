#include "loader/core/transform/kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace fullbore::loader {
namespace {

// Portable and AVX2 on the same bytes. Skipped where the CPU has no AVX2: then there is nothing to compare.
class KernelsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (Avx2Kernels() == nullptr) GTEST_SKIP() << "this CPU has no AVX2";
  }
  std::vector<uint8_t> Bytes(size_t count) {
    std::vector<uint8_t> bytes(count);
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(random_());
    return bytes;
  }
  int Below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }

  const Kernels& portable_ = PortableKernels();
  std::mt19937 random_{1};
};

TEST_F(KernelsTest, FilterRowsAlike) {
  for (int round = 0; round < 300; ++round) {
    Axis axis;
    const int in = 1 + Below(300);
    axis.length = in;
    axis.end = in;
    axis.out_length = axis.count = 1 + Below(100);
    axis.mirror_in = Below(2) == 1;
    axis.interpolation = static_cast<Interpolation>(Below(3));
    TapBuilder builder;
    const Taps& taps = builder.Build(axis);
    const size_t read = static_cast<size_t>(3 * std::max(in, taps.taps)) + kRowSlack;
    const size_t written = static_cast<size_t>(3 * axis.count);
    const std::vector<uint8_t> a = Bytes(read), b = Bytes(read);
    std::vector<uint8_t> out[4];
    for (auto& o : out) o.resize(written + kRowSlack);
    portable_.horizontal_rgb(a.data(), b.data(), taps, out[0].data(), out[1].data());
    Avx2Kernels()->horizontal_rgb(a.data(), b.data(), taps, out[2].data(), out[3].data());
    for (auto& o : out) o.resize(written);
    ASSERT_EQ(out[0], out[2]) << in << " to " << axis.count;
    ASSERT_EQ(out[1], out[3]) << in << " to " << axis.count;
  }
}

TEST_F(KernelsTest, SumRowsAlike) {
  for (int round = 0; round < 300; ++round) {
    const auto bytes = static_cast<size_t>(1 + Below(200));
    const int taps = 2 * (1 + Below(5)), precision = 10 + Below(5);
    std::vector<std::vector<uint8_t>> rows;
    std::vector<const uint8_t*> pointers;
    std::vector<int16_t> weights;
    for (int k = 0; k < taps; ++k) {
      rows.push_back(Bytes(bytes));
      weights.push_back(static_cast<int16_t>(Below(1 << precision) - (1 << (precision - 2))));
    }
    for (const auto& row : rows) pointers.push_back(row.data());
    std::vector<uint8_t> a(bytes), b(bytes);
    portable_.vertical(pointers.data(), weights.data(), taps, precision, bytes, a.data());
    Avx2Kernels()->vertical(pointers.data(), weights.data(), taps, precision, bytes, b.data());
    ASSERT_EQ(a, b);
  }
}

TEST_F(KernelsTest, WriteValuesAlike) {
  const Normalize normalize;
  for (const DType dtype : {DType::kUInt8, DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const int channels : {1, 3}) {
      const ValueMap map = ValueMap::Of(dtype, channels, dtype == DType::kUInt8 ? nullptr : &normalize);
      for (size_t width = 1; width < 60; ++width) {
        const size_t count = width * static_cast<size_t>(channels), size = count * BytesOf(dtype);
        const std::vector<uint8_t> row = Bytes(count + kRowSlack);
        std::vector<std::byte> a(size), b(size);
        portable_.write_values(row.data(), count, map, a.data());
        Avx2Kernels()->write_values(row.data(), count, map, b.data());
        ASSERT_EQ(a, b) << NameOf(dtype) << " " << width;
        if (channels == 1) continue;
        std::byte* const planes_a[3] = {&a[0], &a[size / 3], &a[size / 3 * 2]};
        std::byte* const planes_b[3] = {&b[0], &b[size / 3], &b[size / 3 * 2]};
        portable_.write_planes(row.data(), width, map, planes_a);
        Avx2Kernels()->write_planes(row.data(), width, map, planes_b);
        ASSERT_EQ(a, b) << NameOf(dtype) << " planes " << width;
      }
    }
  }
}

TEST(ValueMapTest, NormalisesAsTorchvisionDoes) {
  const Normalize normalize;
  const ValueMap map = ValueMap::Of(DType::kFloat32, 3, &normalize);
  for (size_t c = 0; c < 3; ++c) {
    for (size_t v = 0; v < 256; ++v) {
      const float expected = (static_cast<float>(v) / 255 - normalize.mean[c]) / normalize.std[c];
      EXPECT_NEAR(std::bit_cast<float>(map.table[c][v]), expected, 1e-6);
    }
  }
}

TEST(ValueMapTest, WhiteIsExactlyOneWithoutNormalize) {
  const ValueMap map = ValueMap::Of(DType::kFloat32, 3, nullptr);
  EXPECT_EQ(std::bit_cast<float>(map.table[0][255]), 1.0f);
  EXPECT_EQ(std::bit_cast<float>(map.table[0][0]), 0.0f);
}

TEST(HalfTest, RoundsToTheNearestWithTiesToEven) {
  EXPECT_EQ(ToFloat16(1.0f), 0x3c00);
  EXPECT_EQ(ToFloat16(-2.0f), 0xc000);
  EXPECT_EQ(ToFloat16(65504.0f), 0x7bff);
  EXPECT_EQ(ToFloat16(65520.0f), 0x7c00);
  EXPECT_EQ(ToFloat16(1.0f + 0x1p-11f), 0x3c00);      // a tie, to even
  EXPECT_EQ(ToFloat16(1.0f + 3 * 0x1p-11f), 0x3c02);  // the other way
  EXPECT_EQ(ToFloat16(0x1p-24f), 0x0001);             // the smallest subnormal
  EXPECT_EQ(ToFloat16(0x1p-26f), 0x0000);
  EXPECT_EQ(ToFloat16(std::numeric_limits<float>::quiet_NaN()) & 0x7c00, 0x7c00);
  EXPECT_EQ(ToBFloat16(1.0f), 0x3f80);
  EXPECT_EQ(ToBFloat16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(ToBFloat16(1.0f + 3 * 0x1p-8f), 0x3f82);
}

}  // namespace
}  // namespace fullbore::loader
