// Images and labels into tar shards: `fullbore loader pack`.
//
// OUT/shard-000000.tar, ...; NAME.tar.idx beside each (tar_index.h); classes.json, the names of the labels.
// The key of a sample is its number in the source, so that a shuffled shard still says which image is which.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/loader.h"

namespace fullbore::loader {

struct PackOptions {
  SourceOptions source;                // an image folder or a list
  std::string output;                  // a directory; made where it is not there
  uint64_t shard_bytes = 256'000'000;  // a shard ends before it grows beyond, unless one sample does
  std::optional<uint64_t> shuffle_seed;
  bool force =
      false;  // into a directory that is not empty; shards of an earlier pack there are removed first
};

struct PackProgress {
  uint64_t samples = 0, all_samples = 0;
  uint64_t bytes = 0;   // written
  uint64_t shards = 0;  // whole
};

struct PackResult {
  PackProgress done;
  std::vector<std::string> class_names;
  std::vector<Message> messages;
};

// Asked before each sample; false ends the packing with kUnavailable. Whatever ends it early, the shards that
// are whole stay and no other file does; the error's text names them.
using PackWatcher = std::function<bool(const PackProgress& progress)>;
Result<PackResult> Pack(const PackOptions& options, const PackWatcher& watch);

}  // namespace fullbore::loader
