#include "loader/core/transform/resampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "loader/core/transform/pixel_buffer.h"

namespace fullbore::loader {
namespace {

class CollectRows : public RowSink {
 public:
  explicit CollectRows(PixelBuffer& to) : to_(to) {}
  void Put(int y, const uint8_t* row) override { std::copy_n(row, to_.row_bytes(), to_.row(y)); }

 private:
  PixelBuffer& to_;
};

PixelBuffer Resampled(const Pass& pass, const ImageView& image, const Kernels& kernels = BestKernels()) {
  PixelBuffer out;
  out.Resize({pass.window.width, pass.window.height}, image.channels);
  CollectRows sink(out);
  Resampler(kernels).Run(pass, image, sink);
  return out;
}

// Smooth with some noise, and not a byte more than its pixels: what reads beyond is seen by the sanitizer.
struct TestImage {
  std::vector<uint8_t> bytes;
  ImageView view;

  TestImage(Size size, int channels, std::mt19937& random) {
    for (int y = 0; y < size.height; ++y) {
      for (int x = 0; x < size.width; ++x) {
        for (int c = 0; c < channels; ++c) {
          const double wave = std::sin(x * 0.1 + c) + std::cos(y * 0.13 - c);
          bytes.push_back(static_cast<uint8_t>(128 + 50 * wave + random() % 20));
        }
      }
    }
    bytes.shrink_to_fit();
    view = {bytes.data(),
            bytes.size(),
            static_cast<size_t>(size.width * channels),
            channels,
            {0, 0, size.width, size.height},
            1};
  }
  // The same image as a decoder would return it: a part only, in memory of its own.
  TestImage(const TestImage& whole, const Rect& part) {
    const auto channels = static_cast<size_t>(whole.view.channels);
    for (int y = part.y; y < part.y + part.height; ++y) {
      const uint8_t* row = whole.view.data + static_cast<size_t>(y) * whole.view.stride;
      bytes.insert(bytes.end(), row + static_cast<size_t>(part.x) * channels,
                   row + static_cast<size_t>(part.x + part.width) * channels);
    }
    bytes.shrink_to_fit();
    view = {bytes.data(),        bytes.size(), static_cast<size_t>(part.width) * channels,
            whole.view.channels, part,         1};
  }
};

double FilterAt(Interpolation interpolation, double x) {
  x = std::abs(x);
  if (interpolation == Interpolation::kBilinear) return std::max(0.0, 1 - x);
  if (x < 1) return 1.5 * x * x * x - 2.5 * x * x + 1;
  return x < 2 ? -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2 : 0;
}

// The definition, slowly: one axis of `length` values to `out_length`.
std::vector<double> ResizedAxis(const std::vector<double>& in, int out_length, Interpolation interpolation) {
  const double scale = static_cast<double>(in.size()) / out_length, widening = std::max(1.0, scale);
  std::vector<double> out;
  for (int i = 0; i < out_length; ++i) {
    double sum = 0, weights = 0;
    for (size_t x = 0; x < in.size(); ++x) {
      const double weight =
          FilterAt(interpolation, (static_cast<double>(x) + 0.5 - (i + 0.5) * scale) / widening);
      sum += weight * in[x];
      weights += weight;
    }
    out.push_back(std::clamp(std::round(sum / weights), 0.0, 255.0));
  }
  return out;
}

using At = std::function<double(int x, int y)>;

// One channel of `pass` over pixels given by `at`.
double Reference(const Pass& pass, const At& at, int x, int y) {
  const auto within = [&](int px, int py) {
    const int from_x = pass.mirror_box ? pass.box.x + pass.box.width - 1 - px : pass.box.x + px;
    return at(from_x, pass.box.y + py);
  };
  const int column = pass.window.x + (pass.mirror_window ? pass.window.width - 1 - x : x);
  const int row = pass.window.y + y;
  if (column < 0 || row < 0 || column >= pass.size.width || row >= pass.size.height) return 0;
  std::vector<double> filtered;
  for (int py = 0; py < pass.box.height; ++py) {
    std::vector<double> line;
    for (int px = 0; px < pass.box.width; ++px) line.push_back(within(px, py));
    filtered.push_back(ResizedAxis(line, pass.size.width, pass.interpolation)[static_cast<size_t>(column)]);
  }
  return ResizedAxis(filtered, pass.size.height, pass.interpolation)[static_cast<size_t>(row)];
}

Pass RandomPass(std::mt19937& random, int largest) {
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  Pass pass;
  pass.input = {1 + below(largest), 1 + below(largest)};
  pass.box = {below(pass.input.width), below(pass.input.height), 0, 0};
  pass.box.width = 1 + below(pass.input.width - pass.box.x);
  pass.box.height = 1 + below(pass.input.height - pass.box.y);
  pass.size = {1 + below(largest), 1 + below(largest)};
  if (below(4) == 0) pass.size.width = pass.box.width;
  if (below(4) == 0) pass.size.height = pass.box.height;
  pass.window = {0, 0, pass.size.width, pass.size.height};
  if (below(2) == 0)
    pass.window = {below(largest) - largest / 2, below(largest) - largest / 2, 1 + below(largest),
                   1 + below(largest)};
  pass.mirror_box = below(2) == 0;
  pass.mirror_window = below(2) == 0;
  pass.interpolation = static_cast<Interpolation>(below(3));
  return pass;
}

TEST(ResamplerTest, ComputesTheDefinitionToTheLastBit) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    Pass pass = RandomPass(random, 40);
    if (pass.interpolation == Interpolation::kNearest) pass.interpolation = Interpolation::kBicubic;
    const TestImage image(pass.input, 1, random);
    const PixelBuffer out = Resampled(pass, image.view);
    const At at = [&](int x, int y) { return image.bytes[static_cast<size_t>(y * pass.input.width + x)]; };
    for (int i = 0; i < 20; ++i) {
      const int x = static_cast<int>(random() % static_cast<unsigned>(out.size.width));
      const int y = static_cast<int>(random() % static_cast<unsigned>(out.size.height));
      // 16-bit weights and a row of 8 bits in between: one step each.
      ASSERT_NEAR(out.row(y)[x], Reference(pass, at, x, y), 2)
          << "round " << round << " at " << x << "," << y;
    }
  }
}

TEST(ResamplerTest, TakesWholePixelsWithNearest) {
  std::mt19937 random(4);
  Pass pass;
  pass.input = {4, 1};
  pass.box = {0, 0, 4, 1};
  pass.size = {2, 1};
  pass.window = {0, 0, 2, 1};
  pass.interpolation = Interpolation::kNearest;
  const TestImage image(pass.input, 3, random);
  const PixelBuffer out = Resampled(pass, image.view);
  EXPECT_TRUE(std::equal(out.row(0), out.row(0) + 3, &image.bytes[3]));
  EXPECT_TRUE(std::equal(out.row(0) + 3, out.row(0) + 6, &image.bytes[9]));
}

// Random geometry, kernels against each other, from a region that is no larger than needed: under the address
// sanitizer this is also the test that nothing outside is touched.
TEST(ResamplerTest, AnyPassOverJustTheNeededRegionGivesTheSameWithBothKernels) {
  std::mt19937 random(5);
  for (int round = 0; round < 3000; ++round) {
    const Pass pass = RandomPass(random, round % 10 == 0 ? 200 : 30);
    const TestImage whole(pass.input, round % 2 == 0 ? 3 : 1, random);
    const TestImage part(whole, SourceRegion(pass, 1));
    const PixelBuffer expected = Resampled(pass, whole.view, PortableKernels());
    const PixelBuffer out = Resampled(pass, part.view);
    const auto bytes = static_cast<std::ptrdiff_t>(expected.bytes());
    ASSERT_TRUE(std::equal(expected.storage.begin(), expected.storage.begin() + bytes, out.storage.begin()))
        << "round " << round;
  }
}

TEST(ResamplerTest, AWindowIsThatPartOfTheWholeResizedImage) {
  std::mt19937 random(6);
  Pass pass;
  pass.input = {133, 97};
  pass.box = {0, 0, 133, 97};
  pass.size = {61, 70};
  pass.window = {0, 0, 61, 70};
  const TestImage image(pass.input, 3, random);
  const PixelBuffer whole = Resampled(pass, image.view);
  pass.window = {20, 30, 25, 33};
  const PixelBuffer part = Resampled(pass, image.view);
  for (int y = 0; y < 33; ++y) {
    EXPECT_TRUE(std::equal(part.row(y), part.row(y) + 75, whole.row(y + 30) + 60)) << y;
  }
}

TEST(ResamplerTest, ScaledImagesStandForTheFullOnes) {
  // A ramp, halved exactly: both ways to its quarter must agree.
  std::vector<uint8_t> full, half;
  for (int x = 0; x < 256; ++x) full.push_back(static_cast<uint8_t>(x));
  for (int x = 0; x < 128; ++x) half.push_back(static_cast<uint8_t>(2 * x));
  Pass pass;
  pass.input = {256, 1};
  pass.box = {17, 0, 203, 1};
  pass.size = {50, 1};
  pass.window = {0, 0, 50, 1};
  const PixelBuffer from_full = Resampled(pass, {full.data(), full.size(), 256, 1, {0, 0, 256, 1}, 1});
  const PixelBuffer from_half = Resampled(pass, {half.data(), half.size(), 128, 1, {0, 0, 128, 1}, 2});
  for (int x = 1; x < 49; ++x) EXPECT_NEAR(from_full.row(0)[x], from_half.row(0)[x], 1) << x;
}

}  // namespace
}  // namespace fullbore::loader
