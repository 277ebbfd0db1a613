// What batches are made of, and what a loader reports about itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/result.h"

namespace fullbore::loader {

enum class DType {
  kUInt8,
  kInt64,
  kFloat32,
  kFloat64,
  kFloat16,
  kBFloat16,
  kInt32,
  kInt16,
  kInt8,
  kUInt16,
  kBool
};
size_t BytesOf(DType type);
const char* NameOf(DType type);  // "float32"
std::optional<DType> DTypeNamed(std::string_view name);

enum class FieldKind {
  kTensor,  // data is an array of shape {rows, ...}
  kText,    // items are UTF-8 texts, one per row
  kBytes,   // items are raw bytes, one per row
};

struct BatchField {
  std::string name;
  FieldKind kind = FieldKind::kTensor;
  DType dtype = DType::kUInt8;
  std::vector<int64_t> shape;           // in layout order, contiguous
  void* data = nullptr;                 // 64-byte aligned
  std::vector<std::string_view> items;  // kText and kBytes only
};

// A finished batch. Copies share its memory, which returns to the loader's pool with the last copy, on any
// thread, even after the loader is gone.
struct Batch {
  std::vector<BatchField> fields;
  int64_t rows = 0;
  uint64_t epoch = 0;
  uint64_t index = 0;                // within this rank's batches of the epoch
  std::vector<uint64_t> sample_ids;  // which sample of the source each row is
  std::vector<uint8_t> valid;        // 0 for rows that only pad the last batch, else 1
  int cuda_device = -1;              // the device whose memory holds the tensors; -1: host memory
  std::shared_ptr<void> owner;
};

// A user stage: called in the loader's threads for each finished row, after the transforms. May change the
// row's bytes in place. An error marks the sample as bad.
struct Row {
  uint64_t sample_id = 0, epoch = 0;
  std::vector<BatchField> fields;  // this row only: no leading dimension; items has one entry
  uint64_t random_seed = 0;        // hash of seed, epoch and sample: the same on any thread
  std::shared_ptr<void> owner;     // owns the fields' memory; a stage that keeps a field keeps this, too
};
using RowFunction = std::function<Result<void>(Row& row)>;

// The position of an iteration, exact to the sample. Valid
// for a different number of ranks or batch size, too.
struct LoaderState {
  uint64_t seed = 0;
  uint64_t epoch = 0;
  uint64_t consumed = 0;  // samples of the epoch given to all ranks together
  uint64_t samples = 0;   // of the source, to notice when it is a different one
  std::string ToJson() const;
  static Result<LoaderState> FromJson(std::string_view text);
};

struct BadSample {
  uint64_t epoch = 0, id = 0;
  std::string name;  // the file, and the place in it
  Error error;
};

struct Message {
  enum class Severity { kInfo, kWarning, kError } severity = Severity::kInfo;
  std::string text;
};

// What a stage did since the loader was opened, summed over its threads.
struct StageStats {
  std::string name;  // "read", "decode", "transform", "user", "collate", "copy"
  int threads = 0;   // working in it now; stages that share threads show the same number
  uint64_t samples = 0;
  uint64_t bytes = 0;
  uint64_t busy_ns = 0;
  // Waiting: "read" for a permit to use a core, "user" inside the function (for Python's interpreter, or for
  // what the function calls), "collate" for room among the finished batches.
  uint64_t blocked_ns = 0;
};

struct LoaderStats {
  std::vector<StageStats> stages;
  int ready_batches = 0, ready_capacity = 0;
  uint64_t batches = 0;           // given to the consumer
  uint64_t consumer_wait_ns = 0;  // time the consumer spent waiting in Next
  uint64_t consumer_busy_ns = 0;  // time between its calls
  uint64_t pool_bytes = 0;        // of all batch memory, in use or free
  uint64_t bad_samples = 0;
};

}  // namespace fullbore::loader
