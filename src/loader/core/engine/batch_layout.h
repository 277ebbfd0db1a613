// The memory layout of a batch, decided once, and writing a sample into its row.
#pragma once

#include <string>
#include <vector>

#include "fullbore/loader/source.h"
#include "loader/core/engine/slot_pool.h"
#include "loader/core/transform/image_plan.h"

namespace fullbore::loader {

struct FieldLayout {
  std::string name;
  SourceFieldKind source = SourceFieldKind::kBytes;
  FieldKind kind = FieldKind::kBytes;
  DType dtype = DType::kUInt8;
  std::vector<int64_t> row_shape;
  size_t row_bytes = 0;  // 0 for texts and bytes
  size_t offset = 0;     // of the field in the slot's block
};

class BatchLayout {
 public:
  // Reads samples only if a field's shape can be learned from its content alone; the first good one decides.
  static Result<BatchLayout> Of(const Source& source, const ImagePlan& plan,
                                const ImagePlanOptions& image_options, int64_t batch_size);

  const std::vector<FieldLayout>& fields() const { return fields_; }
  size_t slot_bytes() const { return slot_bytes_; }
  bool has_images() const;
  std::vector<bool> FieldsWithItems() const;

  uint8_t* RowOf(const FieldLayout& field, const Slot& slot, size_t row) const {
    return static_cast<uint8_t*>(slot.block.data) + field.offset + row * field.row_bytes;
  }
  void CopyRow(Slot& slot, size_t from, size_t to) const;
  // The batch's fields as the consumer sees them, or those of one row, without the leading dimension.
  std::vector<BatchField> View(const Slot& slot, size_t rows) const;
  std::vector<BatchField> ViewOfRow(const Slot& slot, size_t row) const;

 private:
  std::vector<FieldLayout> fields_;
  size_t slot_bytes_ = 0;
};

// Accumulates the time spent writing rows.
struct WriteTimes {
  ImageTimes image;
  uint64_t collate_ns = 0;
};

// `image` may be null if the layout has no images. May
// take the sample's memory: it is to be read anew then.
Result<void> WriteRow(const BatchLayout& layout, RawSample& sample, SampleSeed seed, ImagePlan::Worker* image,
                      Slot& slot, size_t row, WriteTimes& times);

}  // namespace fullbore::loader
