// Exact statistics of a list of values. A trace's values fit in memory, so no sketch is needed.
#pragma once

#include <cstdint>
#include <vector>

namespace fullbore::analyze {

class Distribution {
 public:
  void Add(int64_t value);

  int64_t count() const { return static_cast<int64_t>(values_.size()); }
  int64_t sum() const { return sum_; }
  double mean() const;
  double deviation() const;         // of the sample (n - 1); 0 with one value
  double Quantile(double q) const;  // linear between neighbours, as in pandas and numpy; 0 if empty
  int64_t min() const { return static_cast<int64_t>(Quantile(0)); }
  int64_t max() const { return static_cast<int64_t>(Quantile(1)); }

 private:
  void Sort() const;

  mutable std::vector<int64_t> values_;
  mutable bool sorted_ = true;
  int64_t sum_ = 0;
};

}  // namespace fullbore::analyze
