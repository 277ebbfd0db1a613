#include "loader/core/engine/batch_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "base/clock.h"
#include "loader/core/image/npy.h"

namespace fullbore::loader {
namespace {

constexpr size_t kAlignment = 64;  // a cache line, and the widest vector loads

// How many samples to try when the shape has to be learned from one: a data set whose first hundred samples
// are all damaged has another problem.
constexpr uint64_t kTries = 100;

size_t BytesOfRow(DType dtype, const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), BytesOf(dtype),
                         [](size_t bytes, int64_t extent) { return bytes * static_cast<size_t>(extent); });
}

bool ShapeIsUnknown(const SourceField& field, const ImagePlan& plan) {
  return field.kind == SourceFieldKind::kNpy ||
         (field.kind == SourceFieldKind::kImage && plan.output_shape().empty());
}

Result<void> LearnShape(std::span<const uint8_t> bytes, const ImagePlan& plan,
                        const ImagePlanOptions& image_options, FieldLayout& field) {
  if (field.source == SourceFieldKind::kNpy) {
    const auto array = ParseNpy(bytes);
    if (!array.ok()) return array.error();
    field.dtype = array->dtype;
    field.row_shape = array->shape;
    return {};
  }
  ImageDecoder decoder;
  const auto info = decoder.ReadInfo(bytes, image_options.max_image_pixels);
  if (!info.ok()) return info.error();
  auto shape = plan.ShapeOf(*info);
  if (!shape.ok()) return shape.error();
  field.row_shape = std::move(*shape);
  return {};
}

FieldLayout KnownPart(const SourceField& field, const ImagePlan& plan) {
  FieldLayout layout;
  layout.name = field.name;
  layout.source = field.kind;
  layout.kind = FieldKind::kTensor;
  switch (field.kind) {
    case SourceFieldKind::kImage:
      layout.dtype = plan.dtype();
      layout.row_shape = plan.output_shape();
      break;
    case SourceFieldKind::kArray:
      layout.dtype = field.dtype;
      layout.row_shape = field.shape;
      break;
    case SourceFieldKind::kInteger:
      layout.dtype = DType::kInt64;
      break;
    case SourceFieldKind::kText:
      layout.kind = FieldKind::kText;
      break;
    case SourceFieldKind::kBytes:
      layout.kind = FieldKind::kBytes;
      break;
    case SourceFieldKind::kNpy:
      break;
  }
  return layout;
}

Result<void> LearnShapes(const Source& source, const ImagePlan& plan, const ImagePlanOptions& image_options,
                         std::vector<FieldLayout>& fields) {
  RawSample sample;
  Result<void> last;
  for (uint64_t id = 0; id < std::min(kTries, source.size()); ++id) {
    last = source.Read(id, sample);
    for (size_t i = 0; last.ok() && i < fields.size(); ++i) {
      if (!ShapeIsUnknown(source.fields()[i], plan)) continue;
      last = LearnShape(sample.fields[i].bytes, plan, image_options, fields[i]);
    }
    if (last.ok()) return last;
  }
  return Error{last.error().code,
               fmt::format("no sample could be read to learn the shape of a batch: {}", last.error().text),
               last.error().hint};
}

Error WrongShape(const FieldLayout& field, DType dtype, const std::vector<int64_t>& shape) {
  return {ErrorCode::kCorrupt,
          fmt::format("'{}' is {} of shape [{}], but the first sample has {} of shape [{}]", field.name,
                      NameOf(dtype), fmt::join(shape, ", "), NameOf(field.dtype),
                      fmt::join(field.row_shape, ", ")),
          "all samples of a batch need the same shape"};
}

Result<void> CopyArray(const FieldLayout& field, std::span<const uint8_t> bytes, uint8_t* out) {
  if (bytes.size() != field.row_bytes) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("'{}' has {} bytes instead of {}", field.name, bytes.size(), field.row_bytes),
                 ""};
  }
  if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
  return {};
}

Result<void> CopyNpy(const FieldLayout& field, std::span<const uint8_t> bytes, uint8_t* out) {
  const auto array = ParseNpy(bytes);
  if (!array.ok()) return array.error();
  if (array->dtype != field.dtype || array->shape != field.row_shape) {
    return WrongShape(field, array->dtype, array->shape);
  }
  return CopyArray(field, array->data, out);
}

// A sample that is mostly this one value swaps the memory it was read into with the item's, so that a long
// text is not copied. If other values fill most of that memory, keeping all of it would cost more than a
// copy.
void KeepItem(std::span<const uint8_t> bytes, RawSample& sample, Item& item) {
  size_t all = 0;
  for (const FieldValue& field : sample.fields) all += field.bytes.size();
  const uint8_t* const begin = sample.storage.data();
  const bool inside = std::less_equal<>{}(begin, bytes.data()) &&
                      std::less_equal<>{}(bytes.data() + bytes.size(), begin + sample.storage.size());
  item.length = bytes.size();
  if (inside && bytes.size() > all / 2) {
    item.begin = static_cast<size_t>(bytes.data() - begin);
    std::swap(item.storage, sample.storage);  // the sample's other fields now point into the item's memory
    return;
  }
  item.begin = 0;
  item.storage.assign(bytes.begin(), bytes.end());
}

}  // namespace

Result<BatchLayout> BatchLayout::Of(const Source& source, const ImagePlan& plan,
                                    const ImagePlanOptions& image_options, int64_t batch_size) {
  BatchLayout layout;
  bool unknown = false;
  for (const SourceField& field : source.fields()) {
    layout.fields_.push_back(KnownPart(field, plan));
    unknown |= ShapeIsUnknown(field, plan);
  }
  if (unknown) {
    const auto learned = LearnShapes(source, plan, image_options, layout.fields_);
    if (!learned.ok()) return learned.error();
  }
  for (FieldLayout& field : layout.fields_) {
    if (field.kind != FieldKind::kTensor) continue;
    field.row_bytes = BytesOfRow(field.dtype, field.row_shape);
    field.offset = layout.slot_bytes_;
    const size_t bytes = field.row_bytes * static_cast<size_t>(batch_size);
    layout.slot_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  return layout;
}

bool BatchLayout::has_images() const {
  return std::any_of(fields_.begin(), fields_.end(),
                     [](const FieldLayout& field) { return field.source == SourceFieldKind::kImage; });
}

std::vector<bool> BatchLayout::FieldsWithItems() const {
  std::vector<bool> with_items;
  for (const FieldLayout& field : fields_) with_items.push_back(field.kind != FieldKind::kTensor);
  return with_items;
}

void BatchLayout::CopyRow(Slot& slot, size_t from, size_t to) const {
  for (size_t i = 0; i < fields_.size(); ++i) {
    const FieldLayout& field = fields_[i];
    if (field.kind == FieldKind::kTensor) {
      std::memcpy(RowOf(field, slot, to), RowOf(field, slot, from), field.row_bytes);
    } else {
      slot.items[i][to] = slot.items[i][from];
    }
  }
}

std::vector<BatchField> BatchLayout::View(const Slot& slot, size_t rows) const {
  std::vector<BatchField> view;
  for (size_t i = 0; i < fields_.size(); ++i) {
    const FieldLayout& field = fields_[i];
    BatchField seen{field.name, field.kind, field.dtype, {static_cast<int64_t>(rows)}, nullptr, {}};
    if (field.kind == FieldKind::kTensor) {
      seen.shape.insert(seen.shape.end(), field.row_shape.begin(), field.row_shape.end());
      seen.data = RowOf(field, slot, 0);
    } else {
      for (size_t row = 0; row < rows; ++row) seen.items.push_back(slot.items[i][row].view());
    }
    view.push_back(std::move(seen));
  }
  return view;
}

std::vector<BatchField> BatchLayout::ViewOfRow(const Slot& slot, size_t row) const {
  std::vector<BatchField> view;
  for (size_t i = 0; i < fields_.size(); ++i) {
    const FieldLayout& field = fields_[i];
    BatchField seen{field.name, field.kind, field.dtype, field.row_shape, nullptr, {}};
    if (field.kind == FieldKind::kTensor) {
      seen.data = RowOf(field, slot, row);
    } else {
      seen.items.push_back(slot.items[i][row].view());
    }
    view.push_back(std::move(seen));
  }
  return view;
}

Result<void> WriteRow(const BatchLayout& layout, RawSample& sample, SampleSeed seed, ImagePlan::Worker* image,
                      Slot& slot, size_t row, WriteTimes& times) {
  int64_t started = MonotonicNs();
  for (size_t i = 0; i < layout.fields().size(); ++i) {
    const FieldLayout& field = layout.fields()[i];
    const FieldValue& value = sample.fields[i];
    uint8_t* out = field.kind == FieldKind::kTensor ? layout.RowOf(field, slot, row) : nullptr;
    Result<void> written;
    switch (field.source) {
      case SourceFieldKind::kImage: {
        written = image->Run(value.bytes, seed, field.row_shape, out, times.image);
        started = MonotonicNs();
        break;
      }
      case SourceFieldKind::kNpy:
        written = CopyNpy(field, value.bytes, out);
        break;
      case SourceFieldKind::kArray:
        written = CopyArray(field, value.bytes, out);
        break;
      case SourceFieldKind::kInteger:
        std::memcpy(out, &value.integer, sizeof value.integer);
        break;
      case SourceFieldKind::kText:
      case SourceFieldKind::kBytes:
        KeepItem(value.bytes, sample, slot.items[i][row]);
        break;
    }
    if (!written.ok()) return written;
  }
  times.collate_ns += static_cast<uint64_t>(MonotonicNs() - started);
  return {};
}

}  // namespace fullbore::loader
