// Samples for tests of what random transforms draw.
#pragma once

#include <cstdint>

#include "loader/core/randomness.h"

namespace fullbore::loader {

inline constexpr int kSamples = 20'000;

inline SampleSeed Seed(int sample) { return SampleSeed::Of(1, 2, static_cast<uint64_t>(sample)); }

}  // namespace fullbore::loader
