#include "explain/analyze/distribution.h"

#include <algorithm>
#include <cmath>

namespace fullbore::analyze {

void Distribution::Add(int64_t value) {
  sorted_ = sorted_ && (values_.empty() || values_.back() <= value);
  values_.push_back(value);
  sum_ += value;
}

double Distribution::mean() const {
  return values_.empty() ? 0 : static_cast<double>(sum_) / static_cast<double>(values_.size());
}

double Distribution::deviation() const {
  if (values_.size() < 2) return 0;
  const double middle = mean();
  double squares = 0;
  for (const int64_t value : values_) {
    const double off = static_cast<double>(value) - middle;
    squares += off * off;
  }
  return std::sqrt(squares / static_cast<double>(values_.size() - 1));
}

double Distribution::Quantile(double q) const {
  if (values_.empty()) return 0;
  Sort();
  const double at = q * static_cast<double>(values_.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, values_.size() - 1);
  const double part = at - static_cast<double>(below);
  return static_cast<double>(values_[below]) + part * static_cast<double>(values_[above] - values_[below]);
}

void Distribution::Sort() const {
  if (sorted_) return;
  std::sort(values_.begin(), values_.end());
  sorted_ = true;
}

}  // namespace fullbore::analyze
