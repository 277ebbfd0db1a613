#include "loader/core/transform/image_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>

#include "loader/core/image/test_images.h"
#include "loader/core/transform/kernels.h"

namespace fullbore::loader {
namespace {

using testing::Bytes;
using testing::MakePicture;
using testing::Picture;

constexpr uint64_t kLimit = 1'000'000;

ImagePlan PlanOf(const std::vector<Transform>& transforms, ImagePlanOptions options = {}) {
  options.max_image_pixels = kLimit;
  auto plan = ImagePlan::Compile(transforms, options);
  EXPECT_TRUE(plan.ok()) << ToString(plan.error());
  return std::move(*plan);
}

ImagePlanOptions InBytes(Layout layout = Layout::kNhwc) {
  ImagePlanOptions options;
  options.dtype = DType::kUInt8;
  options.layout = layout;
  return options;
}

struct Row {
  Result<void> result;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

// The row has exactly its size, so that the sanitizer sees what is written beyond.
Row RunOn(const ImagePlan& plan, const Bytes& encoded, uint64_t sample = 0) {
  Row row;
  ImageDecoder decoder;
  auto info = decoder.ReadInfo(encoded, kLimit);
  row.shape = plan.output_shape();
  if (row.shape.empty() && info.ok()) row.shape = *plan.ShapeOf(*info);
  size_t values = 1;
  for (const int64_t side : row.shape) values *= static_cast<size_t>(side);
  row.bytes.resize(values * BytesOf(plan.dtype()));
  ImageTimes times;
  ImagePlan::Worker worker(plan);
  row.result = worker.Run(encoded, SampleSeed::Of(1, 0, sample), row.shape, row.bytes.data(), times);
  return row;
}

// Without the finest detail, as photographs are.
Picture SmoothPicture(int width, int height) {
  Picture picture = {width, height, 3, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const double wave = std::sin(x * 0.05 + c) + std::cos(y * 0.07 - c);
        picture.pixels.push_back(static_cast<uint8_t>(128 + 60 * wave));
      }
    }
  }
  return picture;
}

// A JPEG with an EXIF segment that tells its orientation.
Bytes Turned(Bytes jpeg, uint8_t orientation) {
  const Bytes segment = {0xff, 0xe1, 0, 34, 'E', 'x',         'i', 'f', 0,    0,    'M', 'M',
                         0,    42,   0, 0,  0,   8,           0,   1,   0x01, 0x12, 0,   3,
                         0,    0,    0, 1,  0,   orientation, 0,   0,   0,    0,    0,   0};
  jpeg.insert(jpeg.begin() + 2, segment.begin(), segment.end());
  return jpeg;
}

TEST(ImagePlanTest, WithoutTransformsTheImageItselfArrives) {
  const Picture picture = MakePicture(37, 21);
  const Row row = RunOn(PlanOf({}, InBytes()), EncodePng(picture, false));
  ASSERT_TRUE(row.result.ok());
  EXPECT_EQ(row.shape, (std::vector<int64_t>{21, 37, 3}));
  EXPECT_EQ(row.bytes, picture.pixels);
}

TEST(ImagePlanTest, PlanesHoldOneChannelEach) {
  const Picture picture = MakePicture(37, 21);
  const Row row = RunOn(PlanOf({}, InBytes(Layout::kNchw)), EncodePng(picture, false));
  EXPECT_EQ(row.shape, (std::vector<int64_t>{3, 21, 37}));
  for (size_t i = 0; i < 37 * 21; ++i) {
    for (size_t c = 0; c < 3; ++c) ASSERT_EQ(row.bytes[c * 37 * 21 + i], picture.pixels[3 * i + c]);
  }
}

TEST(ImagePlanTest, FlipsMirrorEachRow) {
  const Picture picture = MakePicture(37, 21);
  const Row row = RunOn(PlanOf({RandomHorizontalFlip{1}}, InBytes()), EncodePng(picture, false));
  for (size_t y = 0; y < 21; ++y) {
    for (size_t x = 0; x < 37; ++x) {
      ASSERT_EQ(row.bytes[(y * 37 + x) * 3], picture.pixels[(y * 37 + 36 - x) * 3]) << x << "," << y;
    }
  }
}

TEST(ImagePlanTest, CropsOfSmallImagesAreSurroundedByBlack) {
  const Picture picture = MakePicture(3, 5);
  const Row row = RunOn(PlanOf({CenterCrop{.height = 7, .width = 7}}, InBytes()), EncodePng(picture, false));
  ASSERT_TRUE(row.result.ok());
  for (size_t y = 0; y < 7; ++y) {
    for (size_t x = 0; x < 7; ++x) {
      const bool inside = x >= 2 && x < 5 && y >= 1 && y < 6;
      EXPECT_EQ(row.bytes[(y * 7 + x) * 3], inside ? picture.pixels[((y - 1) * 3 + x - 2) * 3] : 0);
    }
  }
}

TEST(ImagePlanTest, FixedSizesAreKnownBeforeAnyImage) {
  EXPECT_EQ(PlanOf({Resize{.height = 256}, CenterCrop{.height = 224, .width = 200}}).output_shape(),
            (std::vector<int64_t>{3, 224, 200}));
  EXPECT_EQ(PlanOf({RandomResizedCrop{.height = 8, .width = 9}, Resize{.height = 16}}).output_shape(),
            (std::vector<int64_t>{3, 16, 18}));
  EXPECT_TRUE(PlanOf({Resize{.height = 256}, RandomHorizontalFlip{}}).output_shape().empty());
  ImagePlanOptions gray;
  gray.mode = ImageMode::kGray;
  gray.layout = Layout::kNhwc;
  EXPECT_EQ(PlanOf({CenterCrop{.height = 4, .width = 5}}, gray).output_shape(),
            (std::vector<int64_t>{4, 5, 1}));
}

TEST(ImagePlanTest, OtherSizesFollowTheImage) {
  ImageInfo info;
  info.width = 500;
  info.height = 375;
  info.orientation = 6;
  EXPECT_EQ(*PlanOf({Resize{.height = 256}}).ShapeOf(info), (std::vector<int64_t>{3, 256, 341}));
  ImagePlanOptions upright;
  upright.apply_exif_orientation = true;
  EXPECT_EQ(*PlanOf({Resize{.height = 256}}, upright).ShapeOf(info), (std::vector<int64_t>{3, 341, 256}));
}

TEST(ImagePlanTest, OrientationIsAppliedOnRequestAtEveryScale) {
  const Bytes encoded = Turned(EncodeJpeg(SmoothPicture(640, 480), 95), 6);
  const std::vector<Transform> transforms = {Resize{.height = 80, .width = 60}};
  ImagePlanOptions options = InBytes();
  options.apply_exif_orientation = true;
  const Row scaled = RunOn(PlanOf(transforms, options), encoded);
  options.scaled_decode = false;
  const Row full = RunOn(PlanOf(transforms, options), encoded);
  // The same picture turned by hand: upright (x, y) is stored at (y, 479 - x).
  const Picture stored = SmoothPicture(640, 480);
  Picture upright = {480, 640, 3, {}};
  for (size_t y = 0; y < 640; ++y) {
    for (size_t x = 0; x < 480; ++x) {
      for (size_t c = 0; c < 3; ++c) upright.pixels.push_back(stored.pixels[((479 - x) * 640 + y) * 3 + c]);
    }
  }
  const Row expected = RunOn(PlanOf(transforms, InBytes()), EncodePng(upright, false));
  ASSERT_EQ(full.bytes.size(), expected.bytes.size());
  for (size_t i = 0; i < full.bytes.size(); ++i) {
    ASSERT_NEAR(full.bytes[i], expected.bytes[i], 4) << i;
    ASSERT_NEAR(scaled.bytes[i], expected.bytes[i], 6) << i;
  }
}

TEST(ImagePlanTest, AnImageOfAnotherSizeThanTheBatchSaysSo) {
  const ImagePlan plan = PlanOf({});
  ImagePlan::Worker worker(plan);
  std::vector<float> out(3 * 4 * 4);
  ImageTimes times;
  const auto result = worker.Run(EncodePng(MakePicture(5, 4), false), {}, {3, 4, 4}, out.data(), times);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(result.error().text, ::testing::HasSubstr("5 x 4"));
}

TEST(ImagePlanTest, AnImageThatWouldGrowBeyondTheLimitIsRefused) {
  ImageInfo info;
  info.width = 10;
  info.height = 60'000;
  EXPECT_FALSE(PlanOf({Resize{.height = 256}}).ShapeOf(info).ok());
  // The crop alone is small: only it is computed.
  const Bytes narrow = EncodePng(MakePicture(2, 2000), false);
  EXPECT_TRUE(
      RunOn(PlanOf({Resize{.height = 999}, CenterCrop{.height = 16, .width = 16}}), narrow).result.ok());
  const Row row =
      RunOn(PlanOf({Resize{.height = 999}, ColorJitter{}, CenterCrop{.height = 16, .width = 16}}), narrow);
  EXPECT_EQ(row.result.error().code, ErrorCode::kUnsupported);
}

TEST(ImagePlanTest, DamagedImagesAreErrors) {
  Bytes encoded = EncodePng(MakePicture(50, 50), false);
  encoded.resize(encoded.size() / 2);
  EXPECT_EQ(RunOn(PlanOf({Resize{.height = 8, .width = 8}}), encoded).result.error().code,
            ErrorCode::kCorrupt);
}

TEST(ImagePlanTest, ASampleDependsOnItsSeedAlone) {
  const Bytes encoded = EncodeJpeg(MakePicture(160, 120), 90);
  const ImagePlan plan = PlanOf({RandomResizedCrop{.height = 32, .width = 32}, RandomHorizontalFlip{},
                                 ColorJitter{.brightness = {0.5, 1.5}, .hue = {-0.1, 0.1}},
                                 RandomRotation{.degrees = {-20, 20}}, Normalize{}});
  ImagePlan::Worker worker(plan);
  ImageTimes times;
  std::vector<std::vector<float>> first;
  for (uint64_t sample = 0; sample < 20; ++sample) {
    first.emplace_back(3 * 32 * 32);
    ASSERT_TRUE(
        worker.Run(encoded, SampleSeed::Of(9, 1, sample), plan.output_shape(), first.back().data(), times)
            .ok());
    if (sample > 0) {
      EXPECT_NE(first[sample], first[sample - 1]);
    }
  }
  // In another order, with a worker that knows nothing: no state goes from one to the next.
  for (uint64_t sample = 20; sample-- > 0;) {
    ImagePlan::Worker fresh(plan);
    std::vector<float> again(3 * 32 * 32);
    ASSERT_TRUE(
        fresh.Run(encoded, SampleSeed::Of(9, 1, sample), plan.output_shape(), again.data(), times).ok());
    EXPECT_EQ(again, first[sample]);
  }
  EXPECT_GT(times.decode_ns, 0u);
  EXPECT_GT(times.transform_ns, 0u);
}

TEST(ImagePlanTest, OutputTypesHoldTheSameValues) {
  const Bytes encoded = EncodePng(MakePicture(40, 30), false);
  const std::vector<Transform> transforms = {Resize{.height = 17, .width = 23}, Normalize{}};
  ImagePlanOptions options;
  const Row wide = RunOn(PlanOf(transforms, options), encoded);
  options.dtype = DType::kFloat16;
  const Row half = RunOn(PlanOf(transforms, options), encoded);
  options.dtype = DType::kBFloat16;
  const Row brain = RunOn(PlanOf(transforms, options), encoded);
  for (size_t i = 0; i < 3 * 17 * 23; ++i) {
    float value;
    uint16_t f16, bf16;
    std::memcpy(&value, &wide.bytes[4 * i], 4);
    std::memcpy(&f16, &half.bytes[2 * i], 2);
    std::memcpy(&bf16, &brain.bytes[2 * i], 2);
    ASSERT_EQ(f16, ToFloat16(value));
    ASSERT_EQ(bf16, ToBFloat16(value));
  }
}

TEST(ImagePlanTest, SmallerDecodesStayCloseToTheFullOne) {
  const Bytes encoded = EncodeJpeg(SmoothPicture(800, 600), 95);
  ImagePlanOptions options = InBytes();
  options.scaled_decode = false;
  const std::vector<Transform> transforms = {Resize{.height = 75, .width = 100}};
  const Row full = RunOn(PlanOf(transforms, options), encoded);
  options.scaled_decode = true;
  const Row scaled = RunOn(PlanOf(transforms, options), encoded);
  EXPECT_NE(full.bytes, scaled.bytes);
  double sum = 0;
  for (size_t i = 0; i < full.bytes.size(); ++i) sum += std::abs(full.bytes[i] - scaled.bytes[i]);
  EXPECT_LT(sum / static_cast<double>(full.bytes.size()), 1);
}

// Deterministic fuzzing: whatever the sizes and the order of transforms, no byte outside is read or written
// (the address sanitizer watches; rows have exactly their size), and the row is filled.
TEST(ImagePlanTest, AnyListOfTransformsStaysWithinItsMemory) {
  std::mt19937 random(11);
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  std::vector<Bytes> images;
  for (const auto& [width, height] : {std::pair{1, 1}, {2, 300}, {300, 1}, {37, 41}, {129, 64}, {400, 300}}) {
    images.push_back(EncodeJpeg(MakePicture(width, height), 80));
    images.push_back(EncodePng(MakePicture(width, height), false));
    images.push_back(Turned(images[images.size() - 2], static_cast<uint8_t>(2 + images.size() % 7)));
  }
  const auto transform = [&]() -> Transform {
    const int height = 1 + below(70), width = 1 + below(70);
    const auto interpolation = static_cast<Interpolation>(below(3));
    switch (below(7)) {
      case 0:
        return Resize{.height = height, .width = width, .interpolation = interpolation};
      case 1:
        return Resize{.height = height, .interpolation = interpolation, .max_size = height + 1 + below(90)};
      case 2:
        return CenterCrop{.height = height, .width = width};
      case 3:
        return RandomResizedCrop{.height = height, .width = width, .interpolation = interpolation};
      case 4:
        return RandomHorizontalFlip{};
      case 5:
        return ColorJitter{.contrast = {0.2, 2}, .saturation = {0, 2}, .hue = {-0.5, 0.5}};
      default:
        return RandomRotation{.degrees = {-180, 180}, .interpolation = interpolation};
    }
  };
  for (int round = 0; round < 600; ++round) {
    std::vector<Transform> transforms;
    for (int n = below(5); n >= 0; --n) transforms.push_back(transform());
    ImagePlanOptions options;
    options.dtype =
        std::array{DType::kUInt8, DType::kFloat32, DType::kFloat16, DType::kBFloat16}[random() % 4];
    options.layout = static_cast<Layout>(below(2));
    options.mode = static_cast<ImageMode>(below(2));
    options.scaled_decode = below(2) == 0;
    options.apply_exif_orientation = below(2) == 0;
    const Row row = RunOn(PlanOf(transforms, options), images[random() % images.size()], random());
    ASSERT_TRUE(row.result.ok()) << "round " << round << ": " << ToString(row.result.error());
  }
}

}  // namespace
}  // namespace fullbore::loader
