// Packs images and labels into tar shards: `fullbore loader pack`.
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
  std::string output;                  // a directory; created if it does not exist
  uint64_t shard_bytes = 256'000'000;  // a shard never exceeds this, unless a single sample does
  std::optional<uint64_t> shuffle_seed;
  bool force = false;  // write to a directory that is not empty, after removing the shards of an earlier pack
};

struct PackProgress {
  uint64_t samples = 0, all_samples = 0;
  uint64_t bytes = 0;   // written
  uint64_t shards = 0;  // complete
};

struct PackResult {
  PackProgress done;
  std::vector<std::string> class_names;
  std::vector<Message> messages;
};

// Called before each sample; false ends the packing with kUnavailable. Whatever ends it early, complete
// shards stay and all other files are removed; the text of the error names the shards.
using PackWatcher = std::function<bool(const PackProgress& progress)>;
Result<PackResult> Pack(const PackOptions& options, const PackWatcher& watch);

}  // namespace fullbore::loader
