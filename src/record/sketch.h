// A quantile sketch in bounded memory: a histogram over geometrically spaced buckets, so that any quantile is
// accurate to within 1 % of its value (DDSketch's bound, arXiv 1908.10693, with alpha = 0.01). Sketches of
// the same kind merge by adding buckets.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fullbore::record {

class Sketch {
 public:
  void Add(double value, uint64_t count = 1);  // negative values count as zero
  void Merge(const Sketch& other);

  uint64_t count() const { return count_; }
  double sum() const { return sum_; }
  double mean() const { return count_ ? sum_ / static_cast<double>(count_) : 0; }
  double max() const { return max_; }
  double Quantile(double q) const;  // 0 when empty

  std::string Encode() const;
  static Result<Sketch> Decode(std::string_view bytes);

 private:
  std::map<int32_t, uint64_t> buckets_;
  uint64_t zeros_ = 0;
  uint64_t count_ = 0;
  double sum_ = 0;
  double max_ = 0;
};

}  // namespace fullbore::record
