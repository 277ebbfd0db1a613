// Random decisions that depend on seed, epoch and sample alone, so that neither the number of threads nor
// ranks nor a resume changes them. Each decision of a sample has its own number: adding a transform of
// another kind does not shift the draws of the others.
#pragma once

#include <cstdint>

namespace fullbore::loader {

// SplitMix64's finalizer (Steele, Lea, Flood 2014): a
// bijection whose output bits each depend on all input bits.
constexpr uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The randomness of one sample in one epoch.
struct SampleSeed {
  uint64_t value = 0;

  static constexpr SampleSeed Of(uint64_t seed, uint64_t epoch, uint64_t sample_id) {
    return {Mix(Mix(Mix(seed) + epoch) + sample_id)};
  }
  // The draw `index` of the transform numbered `position` (kind.h numbers the kinds).
  constexpr uint64_t Bits(int position, int index) const {
    return Mix(value + static_cast<uint64_t>(position) * 0x100000001 + static_cast<uint64_t>(index));
  }
  // In [0, 1), with 53 bits.
  constexpr double Uniform(int position, int index) const {
    return static_cast<double>(Bits(position, index) >> 11) * 0x1.0p-53;
  }
};

}  // namespace fullbore::loader
