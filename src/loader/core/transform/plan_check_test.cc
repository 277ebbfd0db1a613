#include "loader/core/transform/plan_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace fullbore::loader {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const std::vector<Transform>& transforms, DType dtype = DType::kFloat32) {
  ImagePlanOptions options;
  options.dtype = dtype;
  const auto checked = CheckTransforms(transforms, options);
  if (checked.ok()) return "";
  EXPECT_EQ(checked.error().code, ErrorCode::kInvalidArgument);
  return ToString(checked.error());
}

TEST(PlanCheckTest, TheUsualListsAreFine) {
  EXPECT_EQ(ErrorOf({RandomResizedCrop{.height = 224, .width = 224}, RandomHorizontalFlip{}, Normalize{}}),
            "");
  EXPECT_EQ(ErrorOf({Resize{.height = 256}, CenterCrop{.height = 224, .width = 224}}), "");
  EXPECT_EQ(ErrorOf({}, DType::kUInt8), "");
}

TEST(PlanCheckTest, NamesTheTransformTheArgumentItsValueAndWhatIsAllowed) {
  const std::string error = ErrorOf({RandomHorizontalFlip{}, CenterCrop{.height = 224, .width = -3}});
  EXPECT_THAT(error, HasSubstr("transform 2, CenterCrop: width is -3"));
  EXPECT_THAT(error, HasSubstr("1 to 65535"));
}

TEST(PlanCheckTest, RefusesImpossibleSizes) {
  EXPECT_THAT(ErrorOf({Resize{}}), HasSubstr("height is 0"));
  EXPECT_THAT(ErrorOf({Resize{.height = 70'000}}), HasSubstr("height is 70000"));
  EXPECT_THAT(ErrorOf({Resize{.height = 256, .max_size = 256}}), HasSubstr("max_size is 256"));
  EXPECT_THAT(ErrorOf({Resize{.height = 256, .width = 256, .max_size = 300}}), HasSubstr("max_size is 300"));
  EXPECT_THAT(ErrorOf({RandomResizedCrop{.height = 0, .width = 4}}), HasSubstr("height is 0"));
}

TEST(PlanCheckTest, RefusesReversedOrOutOfRangeIntervals) {
  EXPECT_THAT(ErrorOf({RandomResizedCrop{.height = 4, .width = 4, .scale = {1, 0.08}}}),
              HasSubstr("scale is (1, 0.08)"));
  EXPECT_THAT(ErrorOf({RandomResizedCrop{.height = 4, .width = 4, .ratio = {0, 1}}}),
              HasSubstr("ratio is (0, 1)"));
  EXPECT_THAT(ErrorOf({ColorJitter{.brightness = {-0.1, 1}}}), HasSubstr("brightness is (-0.1, 1)"));
  EXPECT_THAT(ErrorOf({ColorJitter{.hue = {-0.6, 0}}}), HasSubstr("-0.5 to 0.5"));
  EXPECT_THAT(ErrorOf({RandomRotation{.degrees = {10, -10}}}), HasSubstr("degrees is (10, -10)"));
  EXPECT_THAT(ErrorOf({RandomRotation{.degrees = {0, std::nan("")}}}), HasSubstr("degrees"));
  EXPECT_THAT(ErrorOf({RandomHorizontalFlip{1.5}}), HasSubstr("p is 1.5"));
}

TEST(PlanCheckTest, RefusesNormalizeWhereItCannotWork) {
  EXPECT_THAT(ErrorOf({Normalize{}}, DType::kUInt8), HasSubstr("uint8"));
  EXPECT_THAT(ErrorOf({Normalize{.std = {1, 0, 1}}}), HasSubstr("std[1] is 0"));
  EXPECT_THAT(ErrorOf({Normalize{}, ColorJitter{}}),
              HasSubstr("transform 2, ColorJitter: comes after Normalize"));
}

TEST(PlanCheckTest, RefusesDTypesThatNoImageHas) {
  EXPECT_THAT(ErrorOf({}, DType::kInt64), HasSubstr("int64"));
}

}  // namespace
}  // namespace fullbore::loader
