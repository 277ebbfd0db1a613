// What batches are made of, and what a loader tells of itself.
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
  kText,    // items are UTF-8 texts, one a row
  kBytes,   // items are the raw bytes, one a row
};

struct BatchField {
  std::string name;
  FieldKind kind = FieldKind::kTensor;
  DType dtype = DType::kUInt8;
  std::vector<int64_t> shape;           // in the order of the layout, contiguous
  void* data = nullptr;                 // 64-byte aligned
  std::vector<std::string_view> items;  // kText and kBytes only
};

// A finished batch. Copies share it; its memory returns to the loader's pool with the last copy, from any
// thread, also after the loader is gone.
struct Batch {
  std::vector<BatchField> fields;
  int64_t rows = 0;
  uint64_t epoch = 0;
  uint64_t index = 0;                // among this rank's batches of the epoch
  std::vector<uint64_t> sample_ids;  // which sample of the source each row is
  std::vector<uint8_t> valid;        // 0 for rows that only pad the last batch, else 1
  int cuda_device = -1;              // whose memory the tensors lie in; -1: the host's
  std::shared_ptr<void> owner;
};

// A user's own stage: called in the loader's threads for each finished row, after the transforms. May change
// the row's bytes in place. An error makes the sample a bad one.
struct Row {
  uint64_t sample_id = 0, epoch = 0;
  std::vector<BatchField> fields;  // of this row alone: no leading dimension; items hold one entry
  uint64_t random_seed = 0;        // hash of seed, epoch and sample: the same whichever thread calls
  std::shared_ptr<void> owner;     // of the fields' memory; a stage that keeps a field keeps this
};
using RowFunction = std::function<Result<void>(Row& row)>;

// Where an iteration stands, exact to the sample. Also
// valid for another number of ranks and another batch size.
struct LoaderState {
  uint64_t seed = 0;
  uint64_t epoch = 0;
  uint64_t consumed = 0;  // samples of the epoch that all ranks together have been given
  uint64_t samples = 0;   // of the source, to notice when it is another one
  std::string ToJson() const;
  static Result<LoaderState> FromJson(std::string_view text);
};

struct BadSample {
  uint64_t epoch = 0, id = 0;
  std::string name;  // the file, and where in it
  Error error;
};

struct Message {
  enum class Severity { kInfo, kWarning, kError } severity = Severity::kInfo;
  std::string text;
};

// What a stage did since the loader was opened, summed over its threads.
struct StageStats {
  std::string name;  // "read", "decode", "transform", "user", "collate", "copy"
  int threads = 0;   // at work in it now; stages that share threads show the same number
  uint64_t samples = 0;
  uint64_t bytes = 0;
  uint64_t busy_ns = 0;
  // Waiting: "read" for leave to use a core, "user" inside the function (for Python's interpreter, or for
  // what it calls), "collate" for room among the finished batches.
  uint64_t blocked_ns = 0;
};

struct LoaderStats {
  std::vector<StageStats> stages;
  int ready_batches = 0, ready_capacity = 0;
  uint64_t batches = 0;           // given to the consumer
  uint64_t consumer_wait_ns = 0;  // time that the consumer spent waiting in Next
  uint64_t consumer_busy_ns = 0;  // time between its calls
  uint64_t pool_bytes = 0;        // of all batch memory, in use or free
  uint64_t bad_samples = 0;
};

}  // namespace fullbore::loader
