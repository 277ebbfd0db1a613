// How the most that a step holds grows with its batch: lines and parabolas through the peaks that batches of different
// sizes reached. What a model keeps of a batch grows with its tokens; of attention that writes its scores down, with
// the square of a row's.
#pragma once

#include <optional>
#include <vector>

#include "explain/diagnose/held_memory.h"

namespace fullbore::diagnose {

class PeakCurve {
 public:
  struct Range {
    double low = 0, expected = 0, high = 0;  // bytes in the program's tensors
  };

  // Nothing without a peak, or where none of the curves goes through those of different sizes.
  static std::optional<PeakCurve> Through(const HeldMemory& held);

  // All curves that fit, and how far they miss what was seen. Of one size, what grows is taken to grow in proportion.
  Range At(const BatchSize& batch) const;

  size_t sizes() const { return sizes_; }  // of batches, that it rests on

 private:
  struct Curve {
    double base = 0, per_element = 0, per_square = 0;
    double misses = 0;  // bytes, at most
  };
  friend class CurveFitter;

  double largest_ = 0;  // elements of the largest that was seen
  size_t sizes_ = 0;
  std::vector<Curve> curves_;  // the expected one first
};

}  // namespace fullbore::diagnose
