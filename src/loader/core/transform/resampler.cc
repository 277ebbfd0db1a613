#include "loader/core/transform/resampler.h"

#include <algorithm>
#include <cstring>

namespace fullbore::loader {
namespace {

struct Part {
  int first = 0, count = 0;
};

// What of a window lies within the resized image.
Part InnerPart(int window, int count, int size) {
  const int first = std::max(0, window);
  return {first, std::max(0, std::min(size, window + count) - first)};
}

Axis AxisOf(int box, int box_length, int size, Part inner, int scale) {
  Axis axis;
  axis.origin = static_cast<double>(box) / scale;
  axis.length = static_cast<double>(box_length) / scale;
  axis.out_length = size;
  axis.first = inner.first;
  axis.count = inner.count;
  return axis;
}

Axis AcrossOf(const Pass& pass, int scale) {
  const Part inner = InnerPart(pass.window.x, pass.window.width, pass.size.width);
  Axis axis = AxisOf(pass.box.x, pass.box.width, pass.size.width, inner, scale);
  axis.mirror_in = pass.mirror_box;
  axis.mirror_out = pass.mirror_window;
  axis.interpolation = pass.interpolation;
  return axis;
}

Axis DownOf(const Pass& pass, int scale) {
  const Part inner = InnerPart(pass.window.y, pass.window.height, pass.size.height);
  Axis axis = AxisOf(pass.box.y, pass.box.height, pass.size.height, inner, scale);
  axis.interpolation = pass.interpolation;
  return axis;
}

Span NeededSpan(Axis axis, int box, int box_length, int scale) {
  axis.begin = box;
  axis.end = box + box_length;
  if (axis.count == 0) return {box, box + 1};
  return NeededBy(axis, scale > 1 ? scale : 0);
}

}  // namespace

Rect SourceRegion(const Pass& pass, int scale) {
  const Span x = NeededSpan(AcrossOf(pass, 1), pass.box.x, pass.box.width, scale);
  const Span y = NeededSpan(DownOf(pass, 1), pass.box.y, pass.box.height, scale);
  return {x.begin, y.begin, x.end - x.begin, y.end - y.begin};
}

void Resampler::Prepare(const Pass& pass, const ImageView& image) {
  image_ = image;
  channels_ = static_cast<size_t>(image.channels);
  across_ = AcrossOf(pass, image.scale);
  across_.begin = image.region.x;
  across_.end = image.region.x + image.region.width;
  down_ = DownOf(pass, image.scale);
  down_.begin = image.region.y;
  down_.end = image.region.y + image.region.height;
  const bool empty = across_.count == 0 || down_.count == 0;
  if (empty) across_.count = down_.count = 0;
  across_taps_ = empty || across_.identity() ? nullptr : &across_builder_.Build(across_);
  down_taps_ = empty || down_.identity() ? nullptr : &down_builder_.Build(down_);

  const int before = across_.first - pass.window.x;
  const int after = pass.window.width - before - across_.count;
  left_bytes_ = static_cast<size_t>(pass.mirror_window ? after : before) * channels_;
  inner_bytes_ = static_cast<size_t>(across_.count) * channels_;
  row_bytes_ = static_cast<size_t>(pass.window.width) * channels_;
  line_.assign(row_bytes_ + kRowSlack, 0);

  next_row_ = 0;
  ring_rows_ = (down_taps_ != nullptr ? down_taps_->taps : 1) + 1;  // rows are filtered in pairs
  ring_stride_ = inner_bytes_ + kRowSlack;
  if (across_taps_ != nullptr) ring_.resize(static_cast<size_t>(ring_rows_) * ring_stride_);
}

void Resampler::Run(const Pass& pass, const ImageView& image, RowSink& sink) {
  Prepare(pass, image);
  const bool margins = inner_bytes_ != row_bytes_;
  for (int y = 0; y < pass.window.height; ++y) {
    const int row = pass.window.y + y - down_.first;
    if (row < 0 || row >= down_.count) {
      std::fill(line_.begin(), line_.end(), uint8_t{0});
      sink.Put(y, line_.data());
      continue;
    }
    const uint8_t* composed = Composed(row);
    const bool has_slack = composed == line_.data() + left_bytes_ || across_taps_ != nullptr;
    if (!margins && has_slack) {
      sink.Put(y, composed);
      continue;
    }
    if (composed != line_.data() + left_bytes_) {
      std::memcpy(line_.data() + left_bytes_, composed, inner_bytes_);
    }
    sink.Put(y, line_.data());
  }
}

const uint8_t* Resampler::Composed(int y) {
  if (down_taps_ == nullptr) {
    return FilteredRow(static_cast<int>(down_.origin) + down_.first + y - down_.begin);
  }
  const int taps = down_taps_->taps;
  const int start = down_taps_->start[static_cast<size_t>(y)];
  pointers_.resize(static_cast<size_t>(taps));
  next_row_ = std::max(next_row_, start);
  for (int k = 0; k < taps; ++k) {
    // Beyond the last row lie only surplus taps: any row serves.
    pointers_[static_cast<size_t>(k)] = FilteredRow(std::min(start + k, down_taps_->input - 1));
  }
  uint8_t* out = line_.data() + left_bytes_;
  kernels_.vertical(pointers_.data(), &down_taps_->weights[static_cast<size_t>(y) * pointers_.size()], taps,
                    down_taps_->precision, inner_bytes_, out);
  return out;
}

const uint8_t* Resampler::FilteredRow(int y) {
  if (across_taps_ == nullptr) {
    const int x = static_cast<int>(across_.origin) + across_.first - across_.begin;
    return image_.data + static_cast<size_t>(y) * image_.stride + static_cast<size_t>(x) * channels_;
  }
  const auto in_ring = [this](int row) {
    return ring_.data() + static_cast<size_t>(row % ring_rows_) * ring_stride_;
  };
  if (next_row_ < y && down_taps_ == nullptr) next_row_ = y;
  while (next_row_ <= y) {
    const int other = std::min(next_row_ + 1, image_.region.height - 1);
    const auto filter = channels_ == 3 ? kernels_.horizontal_rgb : kernels_.horizontal_gray;
    filter(SourceRow(next_row_, 0), SourceRow(other, 1), *across_taps_, in_ring(next_row_), in_ring(other));
    next_row_ += 2;
  }
  return in_ring(y);
}

const uint8_t* Resampler::SourceRow(int y, size_t spare) {
  const size_t offset = static_cast<size_t>(y) * image_.stride;
  const size_t widest = static_cast<size_t>(std::max(across_taps_->input, across_taps_->taps));
  const size_t read = widest * channels_ + kRowSlack;
  if (offset + read <= image_.bytes) return image_.data + offset;
  std::vector<uint8_t>& copy = spares_[spare];
  copy.resize(read);
  std::memcpy(copy.data(), image_.data + offset, static_cast<size_t>(image_.region.width) * channels_);
  return copy.data();
}

}  // namespace fullbore::loader
