// Keeps encoded samples in memory, for storage that is slower than memory and data that fits at least in
// part. Nothing is evicted: as every sample is read once per epoch, evicting would only drop a sample that is
// needed just as much.
#pragma once

#include <memory>

#include "fullbore/loader/source.h"

namespace fullbore::loader {

std::unique_ptr<Source> WithMemoryCache(std::unique_ptr<Source> source, uint64_t limit_bytes);

}  // namespace fullbore::loader
