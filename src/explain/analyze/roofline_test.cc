// The sections of the roofline on a scene with shapes.
#include <gmock/gmock.h>

#include "explain/analyze/testing/scene.h"

namespace fullbore::analyze {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A product of 2 x 4096^3 = 137.4 GFLOP and 100.7 MB in 278 us, and a kernel of nobody's.
Scene Product() {
  Scene scene;
  scene.trace().devices = {"NVIDIA H100 80GB HBM3"};
  scene.trace().device_ops[0] = 1;
  scene.Shaped("aten::mm", 0, 50, {{4096, 4096}, {4096, 4096}}, timeline::ElementType::kBFloat16);
  scene.Op("sm90_bf16_gemm", 10, 100, 378).Op("mine", 60, 400, 500);
  return scene;
}

TEST(RooflineSectionTest, ClassesSayWhatWasReachedOfTheAttainable) {
  const Table table = Product().Make("roofline");
  EXPECT_THAT(Rows(table, {"class", "device_ns", "judged_ns", "flops"}),
              ElementsAre("matmul_tensor, 278000, 278000, 137438953472", "other, 100000, 0, 0",
                          "all, 378000, 278000, 137438953472"));
  EXPECT_THAT(table.notes, Contains(HasSubstr("NVIDIA H100 SXM: 989.4 TFLOP/s dense in 16 bits")));
  EXPECT_THAT(table.notes, Contains(HasSubstr("MFU")));
}

TEST(RooflineSectionTest, OperatorsHaveTheirShapeAndTheirBound) {
  EXPECT_THAT(
      Rows(Product().Make("roofline-operators"),
           {"name", "shape", "type", "kind", "count", "device_ns", "bytes_each", "bound"}),
      ElementsAre(
          "aten::mm, \"(4096, 4096) x (4096, 4096)\", bfloat16, matrix, 1, 278000, 100663296, compute"));
}

TEST(RooflineSectionTest, ChainsSayWhatOneKernelWouldTake) {
  Scene scene;
  scene.trace().devices = {"NVIDIA H100 80GB HBM3"};
  scene.trace().device_ops[0] = 1;
  scene.Shaped("aten::add", 0, 9, {{4096, 4096}, {4096, 4096}}).Op("add_elementwise", 5, 100, 200);
  scene.Shaped("aten::mul", 10, 19, {{4096, 4096}, {4096, 4096}}).Op("mul_elementwise", 15, 200, 300);
  scene.Shaped("aten::tanh", 20, 29, {{4096, 4096}}).Op("tanh_elementwise", 25, 300, 400);
  EXPECT_THAT(
      Rows(scene.Make("roofline-chains"), {"reason", "shape", "length", "count", "device_ns", "operators"}),
      ElementsAre("elementwise-chain, \"(4096, 4096) x (4096, 4096)\", 3, 1, 300000, aten::add | aten::mul | "
                  "aten::tanh"));
}

TEST(RooflineSectionTest, WithoutADeviceWhatIsAttainableIsUnknownAndNotZero) {
  Scene scene = Product();
  scene.trace().devices = {"Test GPU"};
  const Table table = scene.Make("roofline-operators");
  EXPECT_THAT(Rows(table, {"name", "attainable_ns", "reached_ratio", "above_ns"}),
              ElementsAre("aten::mm, , , "));
  EXPECT_THAT(table.notes, Contains(HasSubstr("'Test GPU' is not in the table of devices")));
}

TEST(RooflineSectionTest, ATraceOfTheHostAloneHasNone) {
  for (const char* section : {"roofline", "roofline-operators", "roofline-chains"})
    EXPECT_THAT(Scene().Span("aten::mm", 0, 10).Make(section).rows, IsEmpty()) << section;
}

}  // namespace
}  // namespace fullbore::analyze
