// The options of a loader: what each does, what it costs where it does, and who should touch it. Most people should
// touch none but source, transforms and batch_size. Each has the same name here, in Python and in JSON;
// docs/loader.md has the table.
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
  // Cost: an index in memory that grows with the number of samples, read or made when the loader opens.
  std::vector<std::string> paths;

  // "auto", folder, tar, tfrecord, hdf5 or list. For files whose names do not say it.
  std::string kind = "auto";

  // The fields of a sample, in this order. Empty: image and label for folders and lists, all fields of the
  // first sample for archives. For tar: extensions ("jpg", "cls", "json"); for TFRecord: features; for HDF5:
  // datasets. "jpg;png;webp": the first of these that a sample has.
  // Cost: each is read, and has a row in every batch. Name those that the training uses.
  std::vector<std::string> fields;

  // Of remote files. Empty: $XDG_CACHE_HOME/fullbore. Set it where the home directory is small or on a network.
  std::string cache_directory;

  // The limit of the disk cache, shared by all loaders that use the directory. 0: none, and every epoch fetches
  // everything anew. Cost: so much of the disk. Raise it to the size of the dataset.
  uint64_t cache_bytes = 20'000'000'000;

  // Encoded samples kept in memory. Cost: so much memory, of this process (each rank has its own). For data that
  // fits and lies on storage slower than memory; the kernel keeps local files in memory without it.
  uint64_t memory_cache_bytes = 0;

  // "http://127.0.0.1:9000". Empty: $AWS_ENDPOINT_URL, else AWS. For stores other than AWS.
  std::string s3_endpoint;

  // A request fails when the server has sent no byte for this long, in seconds. Raise it for stores that first have to
  // fetch an object themselves; a low one makes a slow server look like a broken one.
  double timeout_s = 30;

  // Per request, with growing pauses. Cost: a store that is gone is noticed only after all. Raise it for busy stores.
  int retries = 5;
};

struct LoaderOptions {
  SourceOptions source = {};

  // Applied to every image field. Cost: geometry is one resampling of what is decoded, however many there are;
  // ColorJitter and RandomRotation are a pass over the pixels each.
  std::vector<Transform> transforms = {};

  // Rows of a batch. Cost: memory for its rows, in each batch that is kept ready or held by the consumer.
  int64_t batch_size = 1;

  // Off, samples come in the order of the source: for evaluation. On, it costs reads at random places, which are slow
  // on spinning disks and for shards that are not cached; see shuffle_shards.
  bool shuffle = true;

  // 0: shuffle over everything. n: shuffle the order of the shards, then samples within groups of n consecutive shards
  // of that order, so that remote shards are read one after the other. Cost: samples are mixed only within n shards.
  // For remote data that does not fit into the cache.
  int shuffle_shards = 0;

  // Of the order and of all random decisions: the same seed gives the same batches, with any number of threads.
  uint64_t seed = 0;

  // Which part of each epoch this process gets. Python takes them from torch.distributed or the environment.
  int rank = 0, world_size = 1;

  // By default a short last batch is delivered with fewer rows, and all ranks still get equally many batches. drop_last
  // leaves it out: for compiled models, which a new shape makes compile again. pad_last fills it to batch_size rows,
  // where repeated rows have valid == 0: for evaluation that counts each sample once.
  bool drop_last = false, pad_last = false;

  // kRaise is for those who would rather stop than train on fewer samples; it costs the run its first bad sample.
  OnBadSample on_bad_sample = OnBadSample::kSkip;

  // The iteration fails when a larger share of an epoch's samples is bad. Lower it for data that you know to be clean.
  double bad_sample_budget = 0.1;

  // Of images: kUInt8 (without Normalize), kFloat32, kFloat16, kBFloat16. Cost: bytes of a batch, in memory and on the
  // way to the device: kUInt8 is a quarter of kFloat32. For those whose copies are the narrowest pipe.
  DType dtype = DType::kFloat32;

  // kNhwc for models in channels_last, which else convert each batch. It costs the loader nothing.
  Layout layout = Layout::kNchw;

  // kGray decodes only the luma of a JPEG, which is faster; for models with one channel.
  ImageMode image_mode = ImageMode::kRgb;

  // Off, as in torchvision's ImageFolder. On for photographs from cameras, unless the model was trained without it.
  bool apply_exif_orientation = false;

  // A few percent faster, with errors of up to 23/255. Leave it off where accuracy was measured without it.
  bool fast_dct = false;

  // Decode JPEGs that are much larger than needed at 1/2, 1/4 or 1/8 in the DCT: faster, and within 1/255 on average.
  // Off for those who need the pixels of torchvision to the bit.
  bool scaled_decode = true;

  // Larger images are bad samples and are not decoded: what claims to be huge may be an attack. Twice Pillow's limit
  // for a warning. Cost: a decoder's working memory grows with its largest image. Raise it for scans that are larger.
  uint64_t max_image_pixels = 178'956'970;

  // 0: as many as the consumer needs, at most one per core that this process may use. Cost: a core each, which the
  // training loop may want, and a decoder's working memory. For benchmarks; the loader finds the number by itself.
  int threads = 0;

  // Started only while the consumer waits for reading rather than decoding. Cost: an encoded sample in memory and, for
  // remote data, a connection each. Raise it where a store is fast and far away.
  int max_read_threads = 32;

  // Added to the threads' niceness: raise it so that a training on the CPU goes first. Cost: later batches.
  int nice = 0;

  // Most finished batches to keep ready; 0: 2 to 8, as the consumer needs. Cost: memory of a batch each. For steps of
  // very uneven length.
  int prefetch_batches = 0;
};

}  // namespace fullbore::loader
