// The options of a loader. Each has the same name here, in Python and in JSON; docs/loader.md has the table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/loader/transforms.h"
#include "fullbore/loader/types.h"

namespace fullbore::loader {

enum class Layout { kNchw, kNhwc };
enum class ImageMode { kRgb, kGray };

enum class OnBadSample {
  kSkip,   // leave it out and report it, up to bad_sample_budget
  kRaise,  // the first one ends the iteration with its error
};

constexpr int kMaxThreads = 1024;  // of either kind; otherwise a mistyped number could bring the machine down

struct SourceOptions {
  // A directory of class directories; tar shards ("train-{000..012}.tar", "dir/*.tar", a list of them);
  // .tfrecord; .h5; a list file (one "path label" per line, .csv or .tsv); http(s)://..., s3://bucket/key.
  // URLs may contain {000..012}; s3://bucket/prefix/ means every object with that prefix.
  std::vector<std::string> paths;
  std::string kind = "auto";  // or folder, tar, tfrecord, hdf5, list

  // The fields of a sample, in this order. Empty: image and label for folders and lists, all fields of the
  // first sample for archives. For tar: extensions ("jpg", "cls", "json"); for TFRecord: features; for HDF5:
  // datasets. "jpg;png;webp": the first of these that a sample has.
  std::vector<std::string> fields;

  std::string cache_directory;            // of remote files; empty: $XDG_CACHE_HOME/fullbore
  uint64_t cache_bytes = 20'000'000'000;  // its limit; 0: no disk cache
  uint64_t memory_cache_bytes = 0;        // encoded samples kept in memory, for storage slower than memory
  std::string s3_endpoint;                // "http://127.0.0.1:9000"; empty: $AWS_ENDPOINT_URL, else AWS
  double timeout_s = 30;                  // a request fails when the server has sent no byte for this long
  int retries = 5;                        // per request, with growing pauses
};

struct LoaderOptions {
  SourceOptions source = {};
  std::vector<Transform> transforms = {};  // applied to every image field
  int64_t batch_size = 1;

  bool shuffle = true;
  // 0: shuffle over everything. n: shuffle the order of the shards, then samples within groups of n
  // consecutive shards of that order, so that remote shards are read one after the other.
  int shuffle_shards = 0;
  uint64_t seed = 0;
  int rank = 0, world_size = 1;
  // By default a short last batch is delivered with fewer rows, and all ranks still get equally many batches.
  // drop_last leaves it out; pad_last fills it to batch_size rows, where repeated rows have valid == 0.
  bool drop_last = false, pad_last = false;

  OnBadSample on_bad_sample = OnBadSample::kSkip;
  double bad_sample_budget = 0.1;  // the iteration fails when a larger share of an epoch's samples is bad

  DType dtype = DType::kFloat32;  // of images: kUInt8 (without Normalize), kFloat32, kFloat16, kBFloat16
  Layout layout = Layout::kNchw;
  ImageMode image_mode = ImageMode::kRgb;
  bool apply_exif_orientation = false;  // torchvision's ImageFolder ignores it too
  bool fast_dct = false;                // a few percent faster, with errors of up to 23/255
  // Decode JPEGs that are much larger than needed at 1/2, 1/4 or 1/8 in the DCT: faster, and within 1/255 on
  // average.
  bool scaled_decode = true;
  uint64_t max_image_pixels =
      178'956'970;  // twice Pillow's warning limit: larger images are bad samples and are not decoded

  int threads = 0;  // 0: as many as the consumer needs, at most one per core that this process may use
  int max_read_threads = 32;  // started only while the consumer waits for reading rather than decoding
  int nice = 0;               // added to the threads' niceness, so that the training loop goes first
  int prefetch_batches = 0;   // most finished batches to keep ready; 0: 2 to 8, as the consumer needs
};

}  // namespace fullbore::loader
