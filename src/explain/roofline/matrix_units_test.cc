#include "explain/roofline/matrix_units.h"

#include <gtest/gtest.h>

namespace fullbore::roofline {
namespace {

using record::KernelStats;
using record::MatrixUnits;

KernelStats Kernel(const char* name, const char* kernel_class = "matmul") {
  KernelStats kernel;
  kernel.name = name;
  kernel.kernel_class = kernel_class;
  return kernel;
}

TEST(MatrixUnitsTest, DevicesBeforeVoltaAndSmallTuringsHaveNone) {
  for (const char* name : {"Tesla P100-PCIE-16GB", "Tesla P40", "Tesla P4", "Tesla K80", "Tesla M60",
                           "NVIDIA GeForce GTX 1080 Ti", "NVIDIA GeForce GTX 1660 Ti", "Quadro P6000",
                           "NVIDIA TITAN Xp", "TITAN X (Pascal)", "NVIDIA T1000", "AMD Instinct MI50"}) {
    EXPECT_EQ(UnitsOfDevice(name), MatrixUnits::kNone) << name;
  }
}

TEST(MatrixUnitsTest, VoltaAndTuringTakeFloat16Only) {
  for (const char* name :
       {"Tesla V100-SXM2-16GB", "Tesla V100S-PCIE-32GB", "NVIDIA TITAN V", "Tesla T4",
        "NVIDIA GeForce RTX 2080 Ti", "NVIDIA TITAN RTX", "Quadro RTX 6000", "Quadro GV100"}) {
    EXPECT_EQ(UnitsOfDevice(name), MatrixUnits::kFloat16) << name;
  }
}

TEST(MatrixUnitsTest, LaterOnesTakeBfloat16) {
  for (const char* name :
       {"NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA A10", "NVIDIA A10G", "NVIDIA A2",
        "NVIDIA L4", "NVIDIA L40S", "NVIDIA RTX A6000", "NVIDIA RTX 6000 Ada Generation",
        "NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 5090", "NVIDIA H20", "NVIDIA GH200 480GB",
        "NVIDIA B200", "AMD Instinct MI300X VF", "AMD Instinct MI250X",
        "Intel(R) Data Center GPU Max 1550"}) {
    EXPECT_EQ(UnitsOfDevice(name), MatrixUnits::kBFloat16) << name;
  }
}

TEST(MatrixUnitsTest, OfAFamilyThatIsNotHereNothingIsKnown) {
  for (const char* name : {"", "NVIDIA X900", "Some Accelerator", "NVIDIA Graphics Device"})
    EXPECT_EQ(UnitsOfDevice(name), MatrixUnits::kUnknown) << name;
}

TEST(MatrixUnitsTest, WithoutANameTheKernelsTell) {
  EXPECT_EQ(UnitsForKernels({Kernel("volta_sgemm_128x128_nn")}), MatrixUnits::kFloat16);
  EXPECT_EQ(UnitsForKernels({Kernel("turing_fp16_s1688gemm_fp16_256x128_ldg8_f2f_nn")}),
            MatrixUnits::kFloat16);
  EXPECT_EQ(UnitsForKernels({Kernel("volta_sgemm_32x32_nn"), Kernel("ampere_sgemm_128x64_nn")}),
            MatrixUnits::kBFloat16)
      << "the later one decides";
  EXPECT_EQ(UnitsForKernels({Kernel("Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1")}),
            MatrixUnits::kBFloat16);
}

TEST(MatrixUnitsTest, KernelsThatAnyDeviceRunsTellNothing) {
  EXPECT_EQ(UnitsForKernels({Kernel("maxwell_sgemm_128x64_nn"), Kernel("gemm_kernel"),
                             Kernel("void sm80_looks_like_it()", "elementwise")}),
            MatrixUnits::kUnknown);
}

TEST(MatrixUnitsTest, TheNameCountsBeforeTheKernels) {
  EXPECT_EQ(MatrixUnitsOf("Tesla P100-PCIE-16GB", {Kernel("volta_sgemm_128x128_nn")}), MatrixUnits::kNone);
  EXPECT_EQ(MatrixUnitsOf("", {Kernel("volta_sgemm_128x128_nn")}), MatrixUnits::kFloat16);
}

}  // namespace
}  // namespace fullbore::roofline
