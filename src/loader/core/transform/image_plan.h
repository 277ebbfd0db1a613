// A list of transforms, checked and compiled once: from an encoded image to the row of a batch with the least
// work. Geometry is decided before decoding, so that only the region that ends in the output is decoded;
// resampling reads the decoder's rows and writes the crop only; flip, scaling to [0, 1], normalisation,
// conversion and layout happen in the same pass that writes the row.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fullbore/loader.h"
#include "loader/core/image/image.h"
#include "loader/core/randomness.h"

namespace fullbore::loader {

struct ImagePlanOptions {
  DType dtype = DType::kFloat32;
  Layout layout = Layout::kNchw;
  ImageMode mode = ImageMode::kRgb;
  bool apply_exif_orientation = false;
  bool fast_dct = false;
  bool scaled_decode = true;
  uint64_t max_image_pixels = 0;  // 0: the default of LoaderOptions
};

struct ImageTimes {
  uint64_t decode_ns = 0, transform_ns = 0;  // added to
};

class ImagePlan {
 public:
  // kInvalidArgument, naming the transform and the value: sizes <= 0, Normalize with uint8, pixel transforms
  // after Normalize, std of 0, a reversed interval.
  static Result<ImagePlan> Compile(const std::vector<Transform>& transforms, const ImagePlanOptions& options);

  // Of one row, in layout order: {3, 224, 224}. Empty if no transform fixes the size: then all images must
  // have the same size, which the first one decides (ShapeOf).
  std::vector<int64_t> output_shape() const;
  Result<std::vector<int64_t>> ShapeOf(const ImageInfo& info) const;
  DType dtype() const;

  // One thread's working memory.
  class Worker {
   public:
    explicit Worker(const ImagePlan& plan);  // `plan` outlives it
    ~Worker();
    Worker(Worker&&) noexcept;
    // Writes the row of `shape`. kCorrupt, kUnsupported: a bad sample; `out` is then undefined.
    Result<void> Run(std::span<const uint8_t> encoded, SampleSeed seed, const std::vector<int64_t>& shape,
                     void* out, ImageTimes& times);

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

  ImagePlan(ImagePlan&&) noexcept;
  ImagePlan& operator=(ImagePlan&&) noexcept;
  ~ImagePlan();

 private:
  struct Compiled;
  explicit ImagePlan(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace fullbore::loader
