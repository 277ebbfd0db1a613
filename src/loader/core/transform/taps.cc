#include "loader/core/transform/taps.h"

#include <algorithm>
#include <cmath>

namespace fullbore::loader {
namespace {

// Pillow's: with 8 bits of pixel and the overshoot of a cubic this just stays within 32 bits.
constexpr int kMaxPrecision = 22;

double Triangle(double x) { return std::max(0.0, 1 - std::abs(x)); }

double Cubic(double x) {  // Keys 1981, a = -0.5
  x = std::abs(x);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  if (x < 2) return ((-0.5 * x + 2.5) * x - 4) * x + 2;
  return 0;
}

double SupportOf(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::kNearest:
      return 0;
    case Interpolation::kBilinear:
      return 1;
    case Interpolation::kBicubic:
      return 2;
  }
  return 0;
}

double CenterOf(const Axis& axis, int position) {
  const double center = (position + 0.5) * (axis.length / axis.out_length);
  return axis.origin + (axis.mirror_in ? axis.length - center : center);
}

double WideningOf(const Axis& axis) { return std::max(1.0, axis.length / axis.out_length); }

}  // namespace

Span NeededBy(const Axis& axis, int margin) {
  const double a = CenterOf(axis, axis.first), b = CenterOf(axis, axis.first + axis.count - 1);
  const double reach = SupportOf(axis.interpolation) * WideningOf(axis) + 1 + margin;
  const int begin =
      std::clamp(static_cast<int>(std::floor(std::min(a, b) - reach)), axis.begin, axis.end - 1);
  const int end = std::clamp(static_cast<int>(std::ceil(std::max(a, b) + reach)), begin + 1, axis.end);
  return {begin, end};
}

const Taps& TapBuilder::Build(const Axis& axis) {
  if (axis == axis_) return taps_;
  axis_ = axis;
  positions_.clear();
  switch (axis.interpolation) {
    case Interpolation::kNearest:
      AddNearest(axis);
      break;
    case Interpolation::kBilinear:
      AddFiltered<Triangle>(axis);
      break;
    case Interpolation::kBicubic:
      AddFiltered<Cubic>(axis);
      break;
  }
  if (axis.mirror_out) std::reverse(positions_.begin(), positions_.end());
  Quantise(axis);
  return taps_;
}

template <double (*kFilter)(double)>
void TapBuilder::AddFiltered(const Axis& axis) {
  const double widening = WideningOf(axis), narrowing = 1 / widening;
  const double support = SupportOf(axis.interpolation) * widening;
  const int first = std::max(axis.begin, static_cast<int>(std::floor(axis.origin)));
  const int last = std::min(axis.end, static_cast<int>(std::ceil(axis.origin + axis.length)));
  const size_t most = 2 * static_cast<size_t>(support) + 4;  // pixels under a filter, wherever it lies
  exact_.resize(most * static_cast<size_t>(axis.count));
  largest_ = 0;
  for (int i = 0; i < axis.count; ++i) {
    const double center = CenterOf(axis, axis.first + i);
    const double low = center - support + 0.5, high = center + support + 0.5;  // cut off, as Pillow does
    const int begin = std::clamp(static_cast<int>(low), first, last - 1);
    const int end = std::clamp(static_cast<int>(high), begin + 1, last);
    const size_t at = most * static_cast<size_t>(i);
    double* weights = &exact_[at];
    double sum = 0;
    for (int k = 0; k < end - begin; ++k) {
      weights[k] = kFilter((begin + k - center + 0.5) * narrowing);
      sum += weights[k];
    }
    // Nothing under the filter: only if a decoder returned less than requested.
    if (sum == 0) weights[0] = sum = 1;
    const double norm = 1 / sum;
    for (int k = 0; k < end - begin; ++k) {
      weights[k] *= norm;
      largest_ = std::max(largest_, std::abs(weights[k]));
    }
    positions_.push_back({begin - axis.begin, end - begin, at});
  }
}

void TapBuilder::AddNearest(const Axis& axis) {
  exact_.assign(1, 1);
  largest_ = 1;
  const double step = axis.length / axis.out_length;
  double x = step * 0.5;  // summed up, as Pillow does: its rounding decides ties
  for (int position = 0; position < axis.first + axis.count; ++position, x += step) {
    if (position < axis.first) continue;
    const int within = std::clamp(static_cast<int>(x), 0, static_cast<int>(axis.length) - 1);
    const int offset = axis.mirror_in ? static_cast<int>(axis.length) - 1 - within : within;
    const int at = std::clamp(static_cast<int>(axis.origin) + offset, axis.begin, axis.end - 1);
    positions_.push_back({at - axis.begin, 1, 0});
  }
}

void TapBuilder::Quantise(const Axis& axis) {
  int widest = 1;
  for (const Position& p : positions_) widest = std::max(widest, p.count);
  taps_.taps = (widest + 1) / 2 * 2;
  taps_.input = axis.end - axis.begin;
  taps_.precision = 0;
  while (taps_.precision < kMaxPrecision && largest_ * (2 << taps_.precision) < 32767) ++taps_.precision;

  const double one = 1 << taps_.precision;
  taps_.start.resize(positions_.size());
  taps_.weights.assign(positions_.size() * static_cast<size_t>(taps_.taps), 0);
  for (size_t i = 0; i < positions_.size(); ++i) {
    const Position& p = positions_[i];
    // Moved away from the end, so that no row is read beyond it.
    taps_.start[i] = std::max(0, std::min(p.start, taps_.input - taps_.taps));
    int16_t* to = &taps_.weights[i * static_cast<size_t>(taps_.taps)] + (p.start - taps_.start[i]);
    for (int k = 0; k < p.count; ++k) {
      const double weight = exact_[p.at + static_cast<size_t>(k)] * one;
      to[k] = static_cast<int16_t>(weight + (weight < 0 ? -0.5 : 0.5));
    }
  }
}

}  // namespace fullbore::loader
