#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using testing::Advises;
using testing::ARun;
using testing::ATrace;
using testing::FindingIn;
using testing::FindsCause;
using ::testing::HasSubstr;
using testing::kMs;
using ::testing::Not;

constexpr double kPeak = 989.4e12, kBandwidth = 3352e9;  // of an H100
constexpr char kCast[] =
    "void at::native::vectorized_elementwise_kernel<4, at::native::float8_copy_kernel_cuda(at::TensorIteratorBase &)";

record::RooflineOperator AProduct(double m, double k, double n, int64_t device_ms, const char* type) {
  record::RooflineOperator product;
  product.name = "aten::_scaled_mm";
  product.kind = "matrix";
  product.type = type;
  product.shape = fmt::format("({:g}, {:g}) x ({:g}, {:g}) x (1) x (1) ...", m, k, k, n);
  product.count = 1000;
  product.device_ns = device_ms * kMs;
  product.flops = 2 * m * k * n;
  product.bytes = m * k + k * n + 2 * m * n;
  product.attainable_ns = 1e12 * std::max(*product.flops / (2 * kPeak), *product.bytes / kBandwidth);
  return product;
}

record::KernelStats AKernel(const char* name, int64_t count, int64_t ms) {
  record::KernelStats stats;
  stats.name = name;
  stats.count = count;
  stats.sum_ns = ms * kMs;
  return stats;
}

// A trace of 10 s of kernels, with one product and so many ms of one other kernel.
ARun ATraceWith(const record::RooflineOperator& product, const char* kernel, int64_t kernel_ms) {
  ARun run = ATrace();
  record::Roofline roofline;
  roofline.device = "NVIDIA H100 SXM";
  roofline.peak_16bit_flops = kPeak;
  roofline.bytes_per_s = kBandwidth;
  roofline.classes = {{"matmul_tensor", 10'000 * kMs, 10'000 * kMs, 0, 0, std::nullopt}};
  roofline.operators = {product};
  run.rank().roofline = roofline;
  run.rank().tables.emplace().kernels = {AKernel(kernel, 2000, kernel_ms)};
  return run;
}

// 4 us each of 9 us by the peak: in 16 bits hardly more, as most of it is the start of a kernel.
record::RooflineOperator ASmallProduct(const char* type = "float8") {
  return AProduct(512, 512, 512, 9, type);
}

TEST(Fp8OverheadTest, IsRaisedByCastsThatTakeMoreThanSmallProductsSave) {
  const Diagnosis diagnosis = Diagnose(ATraceWith(ASmallProduct(), kCast, 1'500));
  ASSERT_THAT(diagnosis, FindsCause("inefficient-kernels", "fp8-overhead"));
  const Finding& finding = *FindingIn(diagnosis, "inefficient-kernels");
  EXPECT_NEAR(finding.share, 0.15, 0.002);
  EXPECT_THAT(finding.title, HasSubstr("in 1 of 1 scaled products, 15 % of the step"));
  EXPECT_THAT(finding.title, HasSubstr("in the trace, preparing their operands takes 1.5 s"));
  EXPECT_THAT(finding, Advises("keep the layers of these products in 16 bits: (512, 512) x (512, 512)"));
  EXPECT_NEAR(finding.speedup.expected, 1 / 0.85, 0.01);
  EXPECT_GT(finding.speedup.low, 1.1);
  EXPECT_LT(finding.speedup.high, 1.25);
}

TEST(Fp8OverheadTest, KnowsWhatTheCompilerAndTransformerEngineCallIt) {
  for (const char* kernel :
       {"triton_red_fused_abs_max_2", "triton_poi_fused__scaled_mm__to_copy_clamp_mul_reciprocal_t_view_4",
        "void transformer_engine::cast_transpose_fused_kernel<false, false>()",
        "void transformer_engine::mxfp8_kernel::cast_mxfp8_2D_kernel<false>()", "_fp8_quant_kernel"})
    EXPECT_THAT(Diagnose(ATraceWith(ASmallProduct(), kernel, 1'500)),
                FindsCause("inefficient-kernels", "fp8-overhead"))
        << kernel;
}

record::RooflineOperator AnOperator(const char* name, const char* kernel, int64_t count, int64_t device_ms) {
  record::RooflineOperator one;
  one.name = name;
  one.kind = "elementwise";
  one.shape = "(512, 512) x ()";
  one.kernel = kernel;
  one.count = count;
  one.device_ns = device_ms * kMs;
  return one;
}

TEST(Fp8OverheadTest, ScalingBelongsToAsManyCastsAsThereAre) {
  ARun run = ATraceWith(ASmallProduct(), kCast, 600);
  auto& operators = run.rank().roofline->operators;
  operators.push_back(AnOperator("aten::copy_", kCast, 2000, 600));
  operators.push_back(AnOperator("aten::mul", "MulFunctor", 4000, 800));
  operators.push_back(AnOperator("aten::add", "CUDAFunctor_add", 2000, 800));
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, FindsCause("inefficient-kernels", "fp8-overhead"));
  EXPECT_NEAR(FindingIn(diagnosis, "inefficient-kernels")->share, 0.1, 0.002);
}

constexpr char kAbs[] =
    "vectorized_elementwise_kernel<4, at::native::AbsFunctor<float>, std::array<char *, 2> >";

TEST(Fp8OverheadTest, SearchesForTheLargestElementAreAsManyAsThereAreCasts) {
  ARun run = ATraceWith(ASmallProduct(), kCast, 600);
  run.rank().tables->kernels.push_back(AKernel(kAbs, 4000, 800));
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, FindsCause("inefficient-kernels", "fp8-overhead"));
  EXPECT_NEAR(FindingIn(diagnosis, "inefficient-kernels")->share, 0.1, 0.002) << "half of them are a loss's";
}

TEST(Fp8OverheadTest, IsNotRaisedByKernelsThatDoOtherWork) {
  for (const char* kernel : {"triton_poi_fused_add_mul_3", "sm90_fp8_gemm_1d2d_impl",
                             "bfloat16_copy_kernel_cuda", "triton_red_fused_max_1", kAbs})
    EXPECT_THAT(Diagnose(ATraceWith(ASmallProduct(), kernel, 1'500)),
                Not(FindsCause("inefficient-kernels", "fp8-overhead")))
        << kernel;
}

TEST(Fp8OverheadTest, IsNotRaisedWhereFp8Pays) {
  const auto large = AProduct(16384, 8192, 8192, 1'500, "float8");  // 16 bits take 2.8 s and more
  EXPECT_THAT(Diagnose(ATraceWith(large, kCast, 700)),
              Not(FindsCause("inefficient-kernels", "fp8-overhead")));
}

TEST(Fp8OverheadTest, IsNotRaisedByAProgramIn16Bits) {
  EXPECT_THAT(Diagnose(ATraceWith(ASmallProduct("bfloat16"), kCast, 1'500)),
              Not(FindsCause("inefficient-kernels", "fp8-overhead")));
}

TEST(Fp8OverheadTest, IsNotRaisedByALittleOrOnAnUnknownDevice) {
  EXPECT_THAT(Diagnose(ATraceWith(ASmallProduct(), kCast, 400)),
              Not(FindsCause("inefficient-kernels", "fp8-overhead")));
  ARun run = ATraceWith(ASmallProduct(), kCast, 1'500);
  run.rank().roofline->peak_16bit_flops = 0;
  EXPECT_THAT(Diagnose(run), Not(FindsCause("inefficient-kernels", "fp8-overhead")));
}

// Beside 15 % of the step for FP8, a product in 16 bits that takes so many ms of 10 s and reaches a tenth of its limit.
Diagnosis BesideABadShape(int64_t device_ms) {
  ARun run = ATraceWith(ASmallProduct(), kCast, 1'500);
  record::RooflineOperator bad = AProduct(256, 131072, 512, device_ms, "bfloat16");
  bad.attainable_ns = 0.1 * static_cast<double>(bad.device_ns);
  bad.why = {{record::RooflineReason::kMisaligned, "8 blocks for 132 multiprocessors"}};
  run.rank().roofline->operators.push_back(bad);
  return Diagnose(run);
}

TEST(Fp8OverheadTest, IsNoLongerToldWhereOtherShapesCostMuchMore) {
  EXPECT_THAT(BesideABadShape(2'000), FindsCause("inefficient-kernels", "fp8-overhead"));
  EXPECT_THAT(BesideABadShape(6'000), FindsCause("inefficient-kernels", "misaligned"));
}

TEST(Fp8OverheadTest, OnlyTheProductsThatLoseAreNamed) {
  ARun run = ATraceWith(AProduct(16384, 8192, 8192, 1'500, "float8"), kCast, 1'500);
  run.rank().roofline->operators.push_back(AProduct(16384, 16384, 64, 200, "float8"));
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, FindsCause("inefficient-kernels", "fp8-overhead"));
  const Finding& finding = *FindingIn(diagnosis, "inefficient-kernels");
  EXPECT_THAT(finding.title, HasSubstr("in 1 of 2 scaled products"));
  EXPECT_THAT(finding, Advises("(16384, 16384) x (16384, 64) (torchao"));
}

}  // namespace
}  // namespace fullbore::diagnose
