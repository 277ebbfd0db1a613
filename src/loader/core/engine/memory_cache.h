// Keeps encoded samples in memory, for storage that is slower than memory and data that fits at least in
// part. What was read first stays: with every sample read once an epoch, replacing would only throw out what
// is needed just as much.
#pragma once

#include <memory>

#include "fullbore/loader/source.h"

namespace fullbore::loader {

std::unique_ptr<Source> WithMemoryCache(std::unique_ptr<Source> source, uint64_t limit_bytes);

}  // namespace fullbore::loader
