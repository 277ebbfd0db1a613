// What a loader is made with. Each option has one name, here, in Python and as JSON; docs/loader.md has the table.
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
  kSkip,   // left out, reported, up to bad_sample_budget
  kRaise,  // the first ends the iteration with its error
};

constexpr int kMaxThreads = 1024;  // of either kind; a mistyped number would otherwise take the machine along

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
  // A last batch that is short is delivered with fewer rows, and ranks still get equally many batches; or it is
  // left out; or it has batch_size rows, of which repeated ones have valid == 0.
  bool drop_last = false, pad_last = false;

  OnBadSample on_bad_sample = OnBadSample::kSkip;
  double bad_sample_budget = 0.1;  // share of an epoch's samples that may be bad before the iteration fails

  DType dtype = DType::kFloat32;  // of images: kUInt8 (then without Normalize), kFloat32, kFloat16, kBFloat16
  Layout layout = Layout::kNchw;
  ImageMode image_mode = ImageMode::kRgb;
  bool apply_exif_orientation = false;  // torchvision's ImageFolder ignores it too
  bool fast_dct = false;                // errors up to 23/255 for some per cent of speed
  // JPEGs much larger than needed are decoded at 1/2, 1/4 or 1/8 in the DCT: faster, and within 1/255 on average.
  bool scaled_decode = true;
  uint64_t max_image_pixels =
      178'956'970;  // twice Pillow's warning: larger images are bad samples, undecoded

  int threads = 0;            // 0: as many as the consumer needs, at most one a core this process may use
  int max_read_threads = 32;  // started only while reading, not decoding, is what the consumer waits for
  int nice = 0;               // added to the threads' niceness, so that the training loop goes first
  int prefetch_batches = 0;   // finished batches waiting at most; 0: 2 to 8, by what the consumer needs
};

}  // namespace fullbore::loader
