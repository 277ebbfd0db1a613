#include "loader/core/transform/image_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <string>

#include "base/clock.h"
#include "loader/core/transform/geometry.h"
#include "loader/core/transform/kernels.h"
#include "loader/core/transform/kind.h"
#include "loader/core/transform/orientation.h"
#include "loader/core/transform/pixel_buffer.h"
#include "loader/core/transform/plan_check.h"
#include "loader/core/transform/resampler.h"

namespace fullbore::loader {

struct ImagePlan::Compiled {
  std::vector<Transform> transforms;  // without Normalize: that belongs to the output
  ImagePlanOptions options;
  ValueMap values;

  size_t channels() const { return static_cast<size_t>(values.channels); }
  std::vector<int64_t> ShapeFor(Size size) const {
    if (options.layout == Layout::kNhwc) return {size.height, size.width, values.channels};
    return {values.channels, size.height, size.width};
  }
  Size FinalSize(Size size) const {
    for (const Transform& transform : transforms) size = SizeAfter(transform, size);
    return size;
  }
};

namespace {

// How much smaller a JPEG may be decoded. What is left must still be so much larger than the result that its
// filter, not the DCT's, decides what is seen: the margins keep photographs within 1/255 on average
// (bench/loader/scaled_decode.py).
int AllowedScale(const Pass& pass) {
  if (pass.interpolation == Interpolation::kNearest) return 1;
  const auto shrinks = std::min(static_cast<double>(pass.box.width) / pass.size.width,
                                static_cast<double>(pass.box.height) / pass.size.height);
  struct Rule {
    int scale;
    double margin;
  };
  for (const Rule& rule : {Rule{8, 2.5}, Rule{4, 2.5}, Rule{2, 2.0}}) {
    if (shrinks >= rule.scale * rule.margin) return rule.scale;
  }
  return 1;
}

// Filters stay within the existing pixels; copies rely on that.
bool Covers(const Pixels& pixels, const Rect& wanted) {
  const Rect& has = pixels.region;
  const int scale = pixels.scale;
  return has.x * scale <= wanted.x && has.y * scale <= wanted.y &&
         (has.x + has.width) * scale >= wanted.x + wanted.width &&
         (has.y + has.height) * scale >= wanted.y + wanted.height;
}

class BufferSink : public RowSink {
 public:
  explicit BufferSink(PixelBuffer& to) : to_(to) {}
  void Put(int y, const uint8_t* row) override { std::copy_n(row, to_.row_bytes(), to_.row(y)); }

 private:
  PixelBuffer& to_;
};

class OutputSink : public RowSink {
 public:
  OutputSink(const Kernels& kernels, const ValueMap& map, Layout layout, Size size, void* out)
      : kernels_(kernels),
        map_(map),
        interleaved_(layout == Layout::kNhwc || map.channels == 1),
        size_(size),
        row_values_(static_cast<size_t>(size.width) * (interleaved_ ? static_cast<size_t>(map.channels) : 1)),
        out_(static_cast<std::byte*>(out)) {}

  void Put(int y, const uint8_t* row) override {
    const size_t bytes = BytesOf(map_.dtype);
    std::byte* to = out_ + static_cast<size_t>(y) * row_values_ * bytes;
    if (interleaved_) return kernels_.write_values(row, row_values_, map_, to);
    const size_t plane = row_values_ * static_cast<size_t>(size_.height) * bytes;
    std::byte* const planes[3] = {to, to + plane, to + 2 * plane};
    kernels_.write_planes(row, row_values_, map_, planes);
  }

 private:
  const Kernels& kernels_;
  const ValueMap& map_;
  const bool interleaved_;
  const Size size_;
  const size_t row_values_;
  std::byte* const out_;
};

std::string Text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t side : shape) text += (text.empty() ? "{" : ", ") + std::to_string(side);
  return text + "}";
}

}  // namespace

Result<ImagePlan> ImagePlan::Compile(const std::vector<Transform>& transforms,
                                     const ImagePlanOptions& options) {
  if (auto checked = CheckTransforms(transforms, options); !checked.ok()) return checked.error();
  auto compiled = std::make_unique<Compiled>();
  compiled->options = options;
  if (options.max_image_pixels == 0) compiled->options.max_image_pixels = LoaderOptions().max_image_pixels;
  compiled->transforms = transforms;
  const Normalize* normalize = nullptr;
  if (!transforms.empty()) normalize = std::get_if<Normalize>(&transforms.back());
  if (normalize != nullptr) compiled->transforms.pop_back();
  const int channels = options.mode == ImageMode::kGray ? 1 : 3;
  compiled->values = ValueMap::Of(options.dtype, channels, normalize);
  return ImagePlan(std::move(compiled));
}

std::vector<int64_t> ImagePlan::output_shape() const {
  constexpr int kLong = 1000, kShort = 1;
  const Size wide = compiled_->FinalSize({kLong, kShort}), tall = compiled_->FinalSize({kShort, kLong});
  return wide == tall ? compiled_->ShapeFor(wide) : std::vector<int64_t>{};
}

Result<std::vector<int64_t>> ImagePlan::ShapeOf(const ImageInfo& info) const {
  const int orientation = compiled_->options.apply_exif_orientation ? info.orientation : 1;
  const Size size = compiled_->FinalSize(UprightSize({info.width, info.height}, orientation));
  const auto pixels = static_cast<uint64_t>(size.width) * static_cast<uint64_t>(size.height);
  if (pixels > compiled_->options.max_image_pixels) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("an image of {} x {} pixels would become {} x {}: more than {} pixels", info.width,
                    info.height, size.width, size.height, compiled_->options.max_image_pixels),
        "put a CenterCrop after Resize, or raise max_image_pixels"};
  }
  return compiled_->ShapeFor(size);
}

DType ImagePlan::dtype() const { return compiled_->options.dtype; }

ImagePlan::ImagePlan(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
ImagePlan::ImagePlan(ImagePlan&&) noexcept = default;
ImagePlan& ImagePlan::operator=(ImagePlan&&) noexcept = default;
ImagePlan::~ImagePlan() = default;

struct ImagePlan::Worker::State {
  explicit State(const Compiled& its_plan) : plan(its_plan) {}

  Result<void> Run(std::span<const uint8_t> encoded, SampleSeed seed, const std::vector<int64_t>& shape,
                   void* out, ImageTimes& times);

  // Adds the geometric transforms from `index` on to the chain; stops at one that changes pixels.
  size_t Extend(size_t index, SampleSeed seed);
  // Decodes what the chain's first pass reads.
  Result<ImageView> Decode(const ImageInfo& info, int orientation);
  // Runs the chain, into a buffer or, if it ends the list, into the output row.
  Result<ImageView> RunChain(ImageView image, RowSink* output);
  Result<ImageView> ChangePixels(size_t index, SampleSeed seed, const ImageView& image);

  Resampler& ResamplerFor(size_t pass);
  PixelBuffer& OtherBuffer(const ImageView& image) {
    return buffers[image.data == buffers[0].storage.data() ? 1 : 0];
  }

  const Compiled& plan;
  const Kernels& kernels = BestKernels();
  ImageDecoder decoder;
  Pixels pixels;
  std::vector<uint8_t> upright;
  GeometryChain chain;
  PixelBuffer buffers[2];
  std::deque<Resampler> resamplers;  // one for each pass, because each keeps its last filters
  size_t passes_run = 0;
};

Resampler& ImagePlan::Worker::State::ResamplerFor(size_t pass) {
  while (resamplers.size() <= pass) resamplers.emplace_back(kernels);
  return resamplers[pass];
}

size_t ImagePlan::Worker::State::Extend(size_t index, SampleSeed seed) {
  for (; index < plan.transforms.size(); ++index) {
    const Transform& transform = plan.transforms[index];
    const TransformKind& kind = KindOf(transform);
    if (kind.changes_pixels()) break;
    kind.add(chain, transform, Draws(seed, plan.transforms, index));
  }
  return index;
}

Result<ImageView> ImagePlan::Worker::State::Decode(const ImageInfo& info, int orientation) {
  const Pass& pass = chain.passes().front();
  const Size stored = {info.width, info.height};
  DecodeRequest request;
  request.mode = plan.options.mode;
  request.fast_dct = plan.options.fast_dct;
  if (plan.options.scaled_decode && info.format == ImageFormat::kJpeg) request.max_scale = AllowedScale(pass);
  // When mirrored, the pixels of a smaller image would not align with those of the full one.
  while (orientation != 1 &&
         (stored.width % request.max_scale != 0 || stored.height % request.max_scale != 0)) {
    request.max_scale /= 2;
  }
  request.region = StoredRect(SourceRegion(pass, request.max_scale), stored, orientation);
  if (auto decoded = decoder.Decode(request, pixels); !decoded.ok()) return decoded.error();
  if (!Covers(pixels, request.region) || pixels.channels != plan.values.channels) {
    return Error{ErrorCode::kInternal,
                 "the decoder returned a different part of the image than was requested", ""};
  }
  const ImageView view = {pixels.data.data(), pixels.data.size(), pixels.stride,
                          pixels.channels,    pixels.region,      pixels.scale};
  if (orientation == 1) return view;
  return TurnUpright(view, {pixels.scaled_width, pixels.scaled_height}, orientation, upright);
}

Result<ImageView> ImagePlan::Worker::State::RunChain(ImageView image, RowSink* output) {
  const std::vector<Pass>& passes = chain.passes();
  const bool in_buffer = image.data == buffers[0].storage.data() || image.data == buffers[1].storage.data();
  if (output == nullptr && in_buffer && passes.front().changes_nothing()) return image;
  for (size_t i = 0; i < passes.size(); ++i, ++passes_run) {
    const Pass& pass = passes[i];
    Resampler& resampler = ResamplerFor(passes_run);
    if (output != nullptr && i + 1 == passes.size()) {
      resampler.Run(pass, image, *output);
      break;
    }
    const Size size = {pass.window.width, pass.window.height};
    if (static_cast<uint64_t>(size.width) * static_cast<uint64_t>(size.height) >
        plan.options.max_image_pixels) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("resized to {} x {}, more than {} pixels", size.width, size.height,
                               plan.options.max_image_pixels),
                   ""};
    }
    PixelBuffer& to = OtherBuffer(image);
    to.Resize(size, image.channels);
    BufferSink sink(to);
    resampler.Run(pass, image, sink);
    image = to.view();
  }
  return image;
}

Result<ImageView> ImagePlan::Worker::State::ChangePixels(size_t index, SampleSeed seed,
                                                         const ImageView& image) {
  const Transform& transform = plan.transforms[index];
  PixelBuffer& other = OtherBuffer(image);
  PixelBuffer& current = buffers[&other == &buffers[0] ? 1 : 0];
  return KindOf(transform).change(current, other, transform, Draws(seed, plan.transforms, index)).view();
}

Result<void> ImagePlan::Worker::State::Run(std::span<const uint8_t> encoded, SampleSeed seed,
                                           const std::vector<int64_t>& shape, void* out, ImageTimes& times) {
  const int64_t started = MonotonicNs();
  auto info = decoder.ReadInfo(encoded, plan.options.max_image_pixels);
  if (!info.ok()) return info.error();
  const int orientation = plan.options.apply_exif_orientation ? info->orientation : 1;
  const Size size = UprightSize({info->width, info->height}, orientation);
  const Size final_size = plan.FinalSize(size);
  if (plan.ShapeFor(final_size) != shape) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("an image of {} x {} pixels becomes {}, but the rows of the batch are {}",
                             size.width, size.height, Text(plan.ShapeFor(final_size)), Text(shape)),
                 "fix the size with a Resize, CenterCrop or RandomResizedCrop that has width and height"};
  }
  chain.Start(size);
  passes_run = 0;
  size_t next = Extend(0, seed);
  auto image = Decode(*info, orientation);
  const int64_t decoded = MonotonicNs();
  times.decode_ns += static_cast<uint64_t>(decoded - started);
  OutputSink output(kernels, plan.values, plan.options.layout, final_size, out);
  while (image.ok() && next < plan.transforms.size()) {
    image = RunChain(*image, nullptr);
    if (!image.ok()) break;
    image = ChangePixels(next, seed, *image);
    chain.Start({image->region.width, image->region.height});
    next = Extend(next + 1, seed);
  }
  if (image.ok()) image = RunChain(*image, &output);
  times.transform_ns += static_cast<uint64_t>(MonotonicNs() - decoded);
  if (!image.ok()) return image.error();
  return {};
}

ImagePlan::Worker::Worker(const ImagePlan& plan) : state_(std::make_unique<State>(*plan.compiled_)) {}
ImagePlan::Worker::~Worker() = default;
ImagePlan::Worker::Worker(Worker&&) noexcept = default;

Result<void> ImagePlan::Worker::Run(std::span<const uint8_t> encoded, SampleSeed seed,
                                    const std::vector<int64_t>& shape, void* out, ImageTimes& times) {
  return state_->Run(encoded, seed, shape, out, times);
}

}  // namespace fullbore::loader
