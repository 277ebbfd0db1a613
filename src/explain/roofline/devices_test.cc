#include "explain/roofline/devices.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/text.h"

namespace fullbore::roofline {
namespace {

using ::testing::DoubleEq;
using ::testing::Optional;
using timeline::ElementType;

std::string NameOf(std::string_view called, std::optional<int64_t> multiprocessors = std::nullopt) {
  const Device* device = DeviceNamed(called, multiprocessors);
  return device == nullptr ? "" : device->name;
}

TEST(DevicesTest, AreFoundByTheNamesThatDriversGiveThem) {
  EXPECT_EQ(NameOf("NVIDIA H100 80GB HBM3"), "NVIDIA H100 SXM");
  EXPECT_EQ(NameOf("NVIDIA H100 PCIe"), "NVIDIA H100 PCIe");
  EXPECT_EQ(NameOf("NVIDIA H100 NVL"), "NVIDIA H100 NVL");
  EXPECT_EQ(NameOf("NVIDIA H200"), "NVIDIA H200 SXM");
  EXPECT_EQ(NameOf("NVIDIA B200"), "NVIDIA B200");
  EXPECT_EQ(NameOf("Tesla V100-SXM2-16GB"), "NVIDIA V100 SXM2");
  EXPECT_EQ(NameOf("Tesla V100-DGXS-32GB"), "NVIDIA V100 SXM2");
  EXPECT_EQ(NameOf("Tesla V100-PCIE-32GB"), "NVIDIA V100 PCIe");
  EXPECT_EQ(NameOf("Tesla T4"), "NVIDIA T4");
  EXPECT_EQ(NameOf("NVIDIA A100-SXM4-80GB"), "NVIDIA A100 SXM 80 GB");
  EXPECT_EQ(NameOf("A100-SXM4-40GB"), "NVIDIA A100 SXM 40 GB");
  EXPECT_EQ(NameOf("NVIDIA A100 80GB PCIe"), "NVIDIA A100 PCIe 80 GB");
  EXPECT_EQ(NameOf("NVIDIA A10"), "NVIDIA A10");
  EXPECT_EQ(NameOf("NVIDIA A10G"), "NVIDIA A10G");
  EXPECT_EQ(NameOf("NVIDIA L4"), "NVIDIA L4");
  EXPECT_EQ(NameOf("NVIDIA L40S"), "NVIDIA L40S");
  EXPECT_EQ(NameOf("NVIDIA GeForce RTX 3090"), "NVIDIA GeForce RTX 3090");
  EXPECT_EQ(NameOf("NVIDIA GeForce RTX 4090"), "NVIDIA GeForce RTX 4090");
  EXPECT_EQ(NameOf("AMD Instinct MI300X"), "AMD Instinct MI300X");
  EXPECT_EQ(NameOf("AMD Instinct MI300X VF"), "AMD Instinct MI300X");
  EXPECT_EQ(NameOf("AMD Instinct MI250X"), "AMD Instinct MI250X (one die)");
  EXPECT_EQ(NameOf("AMD Instinct MI210"), "AMD Instinct MI210");
}

TEST(DevicesTest, ASimilarNameIsAnotherDevice) {
  for (const char* name :
       {"NVIDIA GeForce RTX 3090 Ti", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA L40", "NVIDIA H20",
        "NVIDIA A100-SXM4-40GB MIG 3g.20gb", "AMD Instinct MI250", "Test GPU", ""})
    EXPECT_EQ(NameOf(name), "") << name;
}

TEST(DevicesTest, APartOfADeviceIsNotTheDevice) {
  EXPECT_EQ(NameOf("NVIDIA H100 80GB HBM3", 132), "NVIDIA H100 SXM");
  EXPECT_EQ(NameOf("NVIDIA H100 80GB HBM3", 60), "");
  EXPECT_EQ(NameOf("AMD Instinct MI300X", 38), "") << "one of eight partitions";
}

TEST(DevicesTest, PeaksGoByTheTypeOfTheElements) {
  const Device& h100 = *DeviceNamed("NVIDIA H100 80GB HBM3");
  EXPECT_THAT(MatrixPeak(h100, ElementType::kBFloat16, true), Optional(DoubleEq(989.4e12)));
  EXPECT_THAT(MatrixPeak(h100, ElementType::kFloat32, true), Optional(DoubleEq(494.7e12))) << "TF32";
  EXPECT_THAT(MatrixPeak(h100, ElementType::kFloat32, false), Optional(DoubleEq(66.9e12)));
  EXPECT_THAT(MatrixPeak(h100, ElementType::kFloat8, true), Optional(DoubleEq(1978.9e12)));
  EXPECT_EQ(MatrixPeak(h100, ElementType::kFloat64, true), std::nullopt) << "not in the table";
}

TEST(DevicesTest, DevicesBeforeAmpereHaveNeitherTf32NorBfloat16) {
  const Device& v100 = *DeviceNamed("Tesla V100-SXM2-16GB");
  EXPECT_THAT(MatrixPeak(v100, ElementType::kFloat32, true), Optional(DoubleEq(15.7e12)));
  EXPECT_THAT(MatrixPeak(v100, ElementType::kBFloat16, true), Optional(DoubleEq(15.7e12)))
      << "computed in float32";
  EXPECT_EQ(MatrixPeak(v100, ElementType::kFloat8, true), std::nullopt);
  EXPECT_TRUE(HasTensorCores(v100));
}

TEST(DevicesTest, MatrixCoresOfAmdTakeFloat32AsItIs) {
  const Device& mi210 = *DeviceNamed("AMD Instinct MI210");
  EXPECT_THAT(MatrixPeak(mi210, ElementType::kFloat32, true), Optional(DoubleEq(45.3e12)));
  const Device& mi300 = *DeviceNamed("AMD Instinct MI300X");
  EXPECT_THAT(MatrixPeak(mi300, ElementType::kFloat32, true), Optional(DoubleEq(163.4e12)));
}

TEST(DevicesTest, UsersMayLeaveOutTheMakerAndTheCase) {
  EXPECT_EQ(DeviceMeant("MI300X"), DeviceNamed("AMD Instinct MI300X"));
  EXPECT_EQ(DeviceMeant("h100 sxm"), DeviceNamed("NVIDIA H100 80GB HBM3"));
  EXPECT_EQ(DeviceMeant("NVIDIA H100 80GB HBM3"), DeviceMeant("H100 SXM"));
  EXPECT_EQ(DeviceMeant(""), nullptr);
}

TEST(DevicesTest, OfSeveralThatAUserMayMeanTheLikeliestIsMeant) {
  EXPECT_STREQ(DeviceMeant("H100")->name, "NVIDIA H100 SXM");
  EXPECT_STREQ(DeviceMeant("nvidia h200")->name, "NVIDIA H200 SXM");
  EXPECT_STREQ(DeviceMeant("V100")->name, "NVIDIA V100 SXM2");
  EXPECT_STREQ(DeviceMeant("a100")->name, "NVIDIA A100 SXM 80 GB");
  EXPECT_STREQ(DeviceMeant("A100 40GB")->name, "NVIDIA A100 SXM 40 GB");
  EXPECT_STREQ(DeviceMeant("H100 PCIe")->name, "NVIDIA H100 PCIe") << "this one was named";
  for (const char* no_kind : {"H", "H1", "SXM", "100", "A1000", "H100 500GB"})
    EXPECT_EQ(DeviceMeant(no_kind), nullptr) << no_kind;
}

// One slip of a digit in the table would make every conclusion wrong. These hold for any device: a tensor
// core is not slower than the rest, and a shorter type not slower than a longer one.
TEST(DevicesTest, FiguresOfTheTableFitEachOther) {
  for (const char* name : {"Tesla V100-SXM2-16GB",
                           "Tesla V100-PCIE-16GB",
                           "Tesla V100S-PCIE-32GB",
                           "Tesla T4",
                           "NVIDIA A10",
                           "NVIDIA A10G",
                           "NVIDIA A100-SXM4-40GB",
                           "NVIDIA A100-SXM4-80GB",
                           "NVIDIA A100-PCIE-40GB",
                           "NVIDIA A100 80GB PCIe",
                           "NVIDIA L4",
                           "NVIDIA L40S",
                           "NVIDIA GeForce RTX 3090",
                           "NVIDIA GeForce RTX 4090",
                           "NVIDIA H100 80GB HBM3",
                           "NVIDIA H100 PCIe",
                           "NVIDIA H100 NVL",
                           "NVIDIA H200",
                           "NVIDIA H200 NVL",
                           "NVIDIA B200",
                           "AMD Instinct MI210",
                           "AMD Instinct MI250X",
                           "AMD Instinct MI300X"}) {
    const Device* device = DeviceNamed(name);
    ASSERT_NE(device, nullptr) << name;
    const Peaks& peaks = device->tflops;
    EXPECT_GE(peaks.fp16, 1.9 * peaks.fp32) << name;
    EXPECT_TRUE(peaks.bf16 == 0 || peaks.bf16 == peaks.fp16) << name;
    EXPECT_TRUE(peaks.tf32 == 0 || (peaks.tf32 >= peaks.fp32 && peaks.tf32 <= 0.52 * peaks.fp16)) << name;
    EXPECT_TRUE(peaks.fp8 == 0 || std::abs(peaks.fp8 / peaks.fp16 - 2) < 0.03) << name;
    // From 10 (L4) to 70 (V100) bytes for a thousand float32 operations, whoever made it.
    const double bytes_per_kflop = device->bandwidth_gb / peaks.fp32;
    EXPECT_GT(bytes_per_kflop, 9) << name;
    EXPECT_LT(bytes_per_kflop, 110) << name;
    EXPECT_GE(device->memory_gb, 16) << name;
    EXPECT_LE(device->memory_gb, 192) << name;
    // What is reached is a good part of the peak, but not more than it, and somebody has published it.
    const Reached& reached = device->reached;
    const auto part = [](double value, double peak) { return value > 0 ? value / peak : 0.6; };
    for (const double of_peak : {part(reached.product_tflops, peaks.fp16),
                                 part(reached.product_fp32_tflops, std::max(peaks.fp32, peaks.fp32_matrix)),
                                 part(reached.elementwise_gb, device->bandwidth_gb)}) {
      EXPECT_GT(of_peak, 0.5) << name;
      EXPECT_LT(of_peak, 1) << name;
    }
    EXPECT_LE(reached.attention_tflops, std::max(reached.product_tflops, 1.0)) << name;
    EXPECT_LE(reached.attention_backward_tflops, reached.attention_tflops) << name;
    const bool any = reached.product_tflops + reached.product_fp32_tflops + reached.elementwise_gb +
                         reached.attention_tflops + reached.least_elementwise_us >
                     0;
    EXPECT_EQ(any, *reached.source != '\0') << name;
  }
}

TEST(DevicesTest, AMistypedNameIsNearOneOfTheTable) {
  EXPECT_EQ(HintForDevice("t5"), "did you mean 'T4'?");
  EXPECT_EQ(HintForDevice("nvidia v10"), "did you mean 'V100 SXM2'?");
  EXPECT_EQ(HintForDevice("MI30X"), "did you mean 'MI300X'?");
  EXPECT_EQ(HintForDevice("h100sxm"), "did you mean 'H100 SXM'?");
  EXPECT_EQ(HintForDevice("abacus"), "the devices are " + NamesOfDevices());
}

TEST(DevicesTest, ShortNamesMeanTheSameDevice) {
  for (const std::string_view name :
       Split(std::string_view("T4,H100,MI300X,GeForce RTX 3090,A100 PCIe 80 GB"), ',')) {
    const Device* device = DeviceMeant(name);
    ASSERT_NE(device, nullptr) << name;
    EXPECT_EQ(DeviceMeant(ShortName(*device)), device) << name;
  }
}

}  // namespace
}  // namespace fullbore::roofline
