// The data loader: from files, archives or an object store to normalised batches, in threads of its own.
//
//   fullbore::loader::LoaderOptions options;
//   options.source.paths = {"photos/train"};
//   options.transforms = {RandomResizedCrop{224, 224}, RandomHorizontalFlip{}, Normalize{}};
//   options.batch_size = 64;
//   auto loader = fullbore::loader::Loader::Open(options);  // Result: .ok(), or .error() says why not
//   for (;;) {
//     auto batch = loader->Next();
//     if (!batch.ok() || !*batch) break;  // an error, or the end of the epoch
//     Train((*batch)->fields[0].data, (*batch)->fields[1].data);
//   }
//
// Which sample stands where in which batch depends on the seed, the epoch and the number of ranks; never on
// the number of threads, the storage's speed or where a run was resumed.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
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

enum class Layout { kNchw, kNhwc };
enum class Interpolation { kNearest, kBilinear, kBicubic };  // the last two antialiased, as Pillow's

// --- Transforms: torchvision's names, arguments and defaults

// width 0: the shorter side becomes `height`, the other follows (torchvision's Resize(int)).
struct Resize {
  int height = 0, width = 0;
  Interpolation interpolation = Interpolation::kBilinear;
  int max_size = 0;  // only with width 0: the longer side's limit; 0: none
};
struct CenterCrop {
  int height = 0, width = 0;
};
struct RandomResizedCrop {
  int height = 0, width = 0;
  std::array<double, 2> scale = {0.08, 1.0};
  std::array<double, 2> ratio = {3.0 / 4.0, 4.0 / 3.0};
  Interpolation interpolation = Interpolation::kBilinear;
};
struct RandomHorizontalFlip {
  double p = 0.5;
};
// Factors are drawn from these intervals; {1, 1} (hue: {0, 0}) leaves that property as it is.
struct ColorJitter {
  std::array<double, 2> brightness = {1, 1}, contrast = {1, 1}, saturation = {1, 1}, hue = {0, 0};
};
struct RandomRotation {
  std::array<double, 2> degrees = {0, 0};
  Interpolation interpolation = Interpolation::kNearest;
  std::array<uint8_t, 3> fill = {0, 0, 0};
};
// On values in [0, 1]; the defaults are ImageNet's.
struct Normalize {
  std::array<float, 3> mean = {0.485f, 0.456f, 0.406f};
  std::array<float, 3> std = {0.229f, 0.224f, 0.225f};
};
using Transform = std::variant<Resize, CenterCrop, RandomResizedCrop, RandomHorizontalFlip, ColorJitter,
                               RandomRotation, Normalize>;

// --- Options

struct SourceOptions {
  // A directory of class directories; tar shards ("train-{000..012}.tar", "dir/*.tar", a list of them);
  // .tfrecord; .h5; a list file ("path label" a line, .csv or .tsv); http(s)://..., s3://bucket/key.
  // The URL of remote files may hold {000..012}; s3://bucket/prefix/ lists.
  std::vector<std::string> paths;
  std::string kind = "auto";  // or folder, tar, tfrecord, hdf5, list

  // Which fields a sample has, in this order; empty: an image and a label for folders and lists, whatever the
  // first sample holds for archives. For tar: extensions ("jpg", "cls", "json"); TFRecord: features; HDF5:
  // datasets. "jpg;png;webp": the first of these that a sample has.
  std::vector<std::string> fields;

  std::string cache_directory;            // of remote files; empty: $XDG_CACHE_HOME/fullbore
  uint64_t cache_bytes = 20'000'000'000;  // its limit; 0: no disk cache
  uint64_t memory_cache_bytes = 0;        // encoded samples kept in memory, for storage slower than memory
  std::string s3_endpoint;                // "http://127.0.0.1:9000"; empty: $AWS_ENDPOINT_URL, else AWS
  double timeout_s = 30;  // without any byte arriving from a server, before a request counts as failed
  int retries = 5;        // of a request, with growing pauses
};

enum class OnBadSample {
  kSkip,   // left out, reported, up to bad_sample_budget
  kRaise,  // the first ends the iteration with its error
};

enum class LastBatch {
  kShort,  // delivered with fewer rows; ranks still get equally many batches
  kDrop,   // left out when it would be short
  kPad,    // every batch has batch_size rows; repeated ones have valid == 0
};

enum class ImageMode { kRgb, kGray };

constexpr int kMaxThreads = 1024;  // of either kind; a mistyped number would otherwise take the machine along

struct LoaderOptions {
  SourceOptions source = {};
  std::vector<Transform> transforms = {};  // of every image field
  int64_t batch_size = 1;

  bool shuffle = true;
  // 0: over everything. n: the order of shards is shuffled, and samples within groups of n consecutive shards
  // of that order, which reads remote shards one after the other.
  int shuffle_shards = 0;
  uint64_t seed = 0;
  int rank = 0, world_size = 1;
  LastBatch last_batch = LastBatch::kShort;

  OnBadSample on_bad_sample = OnBadSample::kSkip;
  double bad_sample_budget = 0.1;  // share of an epoch's samples that may be bad before the iteration fails

  DType image_dtype = DType::kFloat32;  // kUInt8 (then without Normalize), kFloat32, kFloat16, kBFloat16
  Layout layout = Layout::kNchw;
  ImageMode image_mode = ImageMode::kRgb;
  bool apply_exif_orientation = false;  // torchvision's ImageFolder ignores it too
  bool fast_dct = false;                // errors up to 23/255 for some per cent of speed
  // JPEGs much larger than needed are decoded at 1/2, 1/4 or 1/8 in the DCT: faster, and within 1/255 on
  // average.
  bool scaled_decode = true;
  uint64_t max_image_pixels =
      178'956'970;  // twice Pillow's warning: larger images are bad samples, undecoded

  int threads = 0;            // 0: as many as the consumer needs, at most one a core this process may use
  int max_read_threads = 32;  // started only while reading, not decoding, is what the consumer waits for
  int nice = 0;               // added to the threads' niceness, so that the training loop goes first
  int prefetch_batches = 0;   // finished batches waiting at most; 0: 2 to 8, by what the consumer needs
};

// --- Results

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
  std::vector<uint8_t> valid;  // 0 for rows that only pad (LastBatch::kPad, a wrapped last batch), else 1
  int cuda_device = -1;        // whose memory the tensors lie in; -1: the host's
  std::shared_ptr<void> owner;
};

// Where an iteration stands, exact to the sample. Valid for another number of ranks and another batch size
// too.
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
  uint64_t starved_ns = 0;  // waiting for the stage before
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

// A user's own stage: called in the loader's threads for each finished row, after the transforms. May change
// the row's bytes in place. An error makes the sample a bad one.
struct Row {
  uint64_t sample_id = 0, epoch = 0;
  std::vector<BatchField> fields;  // of this row alone: no leading dimension; items hold one entry
  uint64_t random_seed = 0;        // hash of seed, epoch and sample: the same whichever thread calls
  std::shared_ptr<void> owner;     // of the fields' memory; a stage that keeps a field keeps this
};
using RowFunction = std::function<Result<void>(Row& row)>;

// For those who bring their own: src/loader/core/engine/batch_memory.h and src/loader/core/source/source.h.
class BatchMemory;
class Source;

// One thread iterates; Stats, TakeMessages and Stop may be called from any other.
class Loader {
 public:
  // Lists or indexes the source; no thread runs before the first Next.
  static Result<Loader> Open(const LoaderOptions& options, RowFunction user_stage = nullptr,
                             std::shared_ptr<BatchMemory> memory = nullptr);
  // The same over a source of the caller's; options.source counts only for memory_cache_bytes.
  static Result<Loader> Over(std::unique_ptr<Source> source, const LoaderOptions& options,
                             RowFunction user_stage = nullptr, std::shared_ptr<BatchMemory> memory = nullptr);
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  // Ends the threads; one that is stuck in a read of stalled storage is left behind and ends with that read.
  ~Loader();

  // The next batch of the epoch; empty at its end, after which the next call begins the next epoch.
  // After an error the iteration can go on: kCorrupt and other errors of a sample are told once and the next
  // call delivers the good rows of that batch; after kUnavailable (the storage failed) it asks the storage
  // again.
  Result<std::optional<Batch>> Next();
  // The same, but kTimeout when `patience` has passed without a batch; then call again.
  Result<std::optional<Batch>> Next(std::chrono::milliseconds patience);

  // Begins `epoch` at its first batch, whatever was read ahead.
  void SetEpoch(uint64_t epoch);
  LoaderState State() const;  // after the last batch that Next returned
  Result<void> Restore(const LoaderState& state);
  // Interrupts the iteration from another thread: a waiting Next returns kUnavailable, until SetEpoch or
  // Restore.
  void Stop();

  uint64_t samples() const;
  uint64_t batches_per_epoch() const;  // of this rank; from the first batch of an epoch
  const std::vector<std::string>& class_names() const;
  LoaderStats Stats() const;
  std::vector<Message> TakeMessages();         // since the last call
  std::vector<BadSample> bad_samples() const;  // the first 1,000 since Open

 private:
  class Engine;
  explicit Loader(std::shared_ptr<Engine> engine);
  std::shared_ptr<Engine> engine_;
};

}  // namespace fullbore::loader
