#include "loader/core/engine/permutation.h"

#include <bit>

#include "loader/core/randomness.h"

namespace fullbore::loader {
namespace {

// Four rounds of a strong round function make a strong pseudo-random permutation (Luby and Rackoff 1988); two
// more because small data sets have small halves.
constexpr int kRounds = 6;

}  // namespace

Permutation::Permutation(uint64_t n, uint64_t key) : n_(n), key_(key) {
  const int bits = n <= 1 ? 1 : std::bit_width(n - 1);
  half_bits_ = (bits + 1) / 2;
}

uint64_t Permutation::Encrypt(uint64_t x) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = x >> half_bits_, right = x & mask;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t mixed =
        left ^ (Mix(key_ + static_cast<uint64_t>(round) * 0x632be59bd9b4e019 + right) & mask);
    left = right;
    right = mixed;
  }
  return left << half_bits_ | right;
}

uint64_t Permutation::At(uint64_t position) const {
  uint64_t x = position;
  do {
    x = Encrypt(x);
  } while (x >= n_);
  return x;
}

}  // namespace fullbore::loader
