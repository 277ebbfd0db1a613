#include "record/sketch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "record/columns.h"
#include "record/limits.h"

namespace fullbore::record {

namespace {

constexpr double kAlpha = 0.01;  // relative error of a quantile
const double kLogGamma = std::log((1 + kAlpha) / (1 - kAlpha));
constexpr double kSmallest = 1e-9;  // below: zero

int32_t BucketOf(double value) { return static_cast<int32_t>(std::ceil(std::log(value) / kLogGamma)); }
// The bucket numbers of 1e-9 and of the largest double.
const int64_t kFirstBucket = BucketOf(kSmallest), kLastBucket = BucketOf(std::numeric_limits<double>::max());
double MiddleOf(int32_t bucket) { return 2 * std::exp(bucket * kLogGamma) / (1 + std::exp(kLogGamma)); }

}  // namespace

void Sketch::Add(double value, uint64_t count) {
  if (!std::isfinite(value) || count == 0) return;
  count_ += count;
  if (value < kSmallest) {
    zeros_ += count;
    return;
  }
  buckets_[BucketOf(value)] += count;
  sum_ += value * static_cast<double>(count);
  max_ = std::max(max_, value);
}

void Sketch::Merge(const Sketch& other) {
  for (const auto& [bucket, count] : other.buckets_) buckets_[bucket] += count;
  zeros_ += other.zeros_;
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

double Sketch::Quantile(double q) const {
  if (count_ == 0) return 0;
  const double wanted = std::clamp(q, 0.0, 1.0) * static_cast<double>(count_ - 1);
  auto seen = static_cast<double>(zeros_);
  if (seen > wanted) return 0;
  for (const auto& [bucket, count] : buckets_) {
    seen += static_cast<double>(count);
    if (seen > wanted) return std::min(MiddleOf(bucket), max_);
  }
  return max_;
}

// Two columns (buckets, counts), followed by one of four numbers: zeros, count, and the bits of sum and max.
std::string Sketch::Encode() const {
  Column buckets, counts, totals;
  for (const auto& [bucket, count] : buckets_) {
    buckets.values.push_back(bucket);
    counts.values.push_back(static_cast<int64_t>(count));
  }
  int64_t sum_bits = 0, max_bits = 0;
  std::memcpy(&sum_bits, &sum_, sizeof sum_bits);
  std::memcpy(&max_bits, &max_, sizeof max_bits);
  totals.values = {static_cast<int64_t>(zeros_), static_cast<int64_t>(count_), sum_bits, max_bits};
  return EncodeColumns({std::move(buckets), std::move(counts), std::move(totals)});
}

Result<Sketch> Sketch::Decode(std::string_view bytes) {
  auto columns = DecodeColumns(bytes);
  if (!columns) return columns.error();
  const Error corrupt{ErrorCode::kCorrupt, "a quantile sketch is damaged", ""};
  if (columns->size() != 3 || (*columns)[0].values.size() != (*columns)[1].values.size()) return corrupt;
  const auto& totals = (*columns)[2].values;
  if (totals.size() != 4) return corrupt;
  Sketch sketch;
  int64_t counted = totals[0];
  if (totals[0] < 0 || totals[0] > kMaxCount || totals[1] < 0 || totals[1] > kMaxCount) return corrupt;
  for (size_t i = 0; i < (*columns)[0].values.size(); ++i) {
    const int64_t bucket = (*columns)[0].values[i], count = (*columns)[1].values[i];
    if (bucket < kFirstBucket || bucket > kLastBucket || count < 0 || count > totals[1]) return corrupt;
    sketch.buckets_[static_cast<int32_t>(bucket)] = static_cast<uint64_t>(count);
    if ((counted += count) > totals[1]) return corrupt;
  }
  sketch.zeros_ = static_cast<uint64_t>(totals[0]);
  sketch.count_ = static_cast<uint64_t>(totals[1]);
  std::memcpy(&sketch.sum_, &totals[2], sizeof sketch.sum_);
  std::memcpy(&sketch.max_, &totals[3], sizeof sketch.max_);
  const bool possible =
      std::isfinite(sketch.sum_) && sketch.sum_ >= 0 && std::isfinite(sketch.max_) && sketch.max_ >= 0;
  if (counted != totals[1] || !possible) return corrupt;
  return sketch;
}

}  // namespace fullbore::record
