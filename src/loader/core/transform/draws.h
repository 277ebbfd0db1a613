// The random numbers of the transforms of a sample.
#pragma once

#include <cstddef>
#include <vector>

#include "fullbore/loader.h"
#include "loader/core/randomness.h"

namespace fullbore::loader {

// The numbers of one transform of one sample.
class Draws {
 public:
  // Transforms are numbered by kind, and within their kind by order, so that one of another kind anywhere in
  // the list changes nothing for the rest.
  Draws(SampleSeed seed, const std::vector<Transform>& transforms, size_t index);

  double Between(int index, double low, double high) const;
  int Below(int index, int limit) const;  // 0 to limit - 1

 private:
  SampleSeed seed_;
  int position_ = 0;
};

}  // namespace fullbore::loader
