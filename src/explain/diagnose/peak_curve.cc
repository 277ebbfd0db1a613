#include "explain/diagnose/peak_curve.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace fullbore::diagnose {

namespace {

constexpr double kFits = 0.02;  // of the highest peak: what a curve may miss one by
constexpr double kWorkspace =
    32 << 20;                     // bytes: of cuBLAS on Hopper, which is held from its first product on
constexpr double kBetter = 1e-3;  // the same: what another curve has to gain to be expected instead

double SquareOf(const BatchSize& batch) { return batch.elements * batch.width; }

// A first step holds none of the states that the optimizer makes at its end: it counts where there is no other.
std::vector<ReachedPeak> Comparable(const HeldMemory& held) {
  std::vector<ReachedPeak> peaks = held.peaks;
  if (held.States() <= 0) return peaks;
  const auto is_first = [](const ReachedPeak& peak) { return peak.first; };
  if (!std::ranges::all_of(peaks, is_first)) {
    std::erase_if(peaks, is_first);
  } else {
    for (ReachedPeak& peak : peaks) peak.bytes += held.States();
  }
  return peaks;
}

}  // namespace

class CurveFitter {
 public:
  using Curve = PeakCurve::Curve;

  explicit CurveFitter(const HeldMemory& held)
      : peaks_(Comparable(held)),
        stays_(SumOf(held.weights) + held.States()),
        gradients_(SumOf(held.gradients)),
        weights_(SumOf(held.weights)) {
    of_tokens_ = std::ranges::all_of(peaks_, [](const ReachedPeak& peak) { return peak.batch.width > 0; });
    for (const ReachedPeak& peak : peaks_) highest_ = std::max(highest_, peak.bytes);
  }

  std::optional<PeakCurve> Fit() {
    if (peaks_.empty()) return std::nullopt;
    if (peaks_.size() == 1) {
      InProportion();
    } else {
      ThroughAll();
    }
    if (curves_.empty()) return std::nullopt;
    PeakCurve curve;
    curve.sizes_ = peaks_.size();
    curve.largest_ = Last().batch.elements;
    curve.curves_ = std::move(curves_);
    return curve;
  }

 private:
  const ReachedPeak& Last() const { return peaks_.back(); }

  // Gradients come while activations go; temporaries of an optimizer are as large as the weights, and may be the peak.
  void InProportion() {
    const double most = stays_ + gradients_ + weights_ + kWorkspace;
    for (const double base : {stays_ + gradients_, stays_, most}) {
      const double growing = std::max(0.0, Last().bytes - base);
      Add(Last().bytes - growing, growing / Last().batch.elements, 0);
      if (of_tokens_) Add(Last().bytes - growing, 0, growing / SquareOf(Last().batch));
    }
  }

  void ThroughAll() {
    AddLine([](const BatchSize& batch) { return batch.elements; }, &Curve::per_element);
    if (of_tokens_) AddLine(SquareOf, &Curve::per_square);
    if (of_tokens_ && peaks_.size() > 3) AddBoth();
    if (curves_.empty()) return;
    const auto best = std::ranges::min_element(curves_, {}, &Curve::misses);
    if (best->misses < curves_.front().misses - kBetter * highest_) std::iter_swap(curves_.begin(), best);
    if (peaks_.size() > 2) return;
    // Two do not show whether the first of them is the optimizer's own peak, which does not grow.
    Add(stays_, std::max(0.0, Last().bytes - stays_) / Last().batch.elements, 0);
  }

  // Least squares of the peaks by one size.
  template <typename SizeOf>
  void AddLine(SizeOf size_of, double Curve::*slope) {
    double x = 0, y = 0, xx = 0, xy = 0;
    const auto n = static_cast<double>(peaks_.size());
    for (const ReachedPeak& peak : peaks_) {
      x += size_of(peak.batch) / n;
      y += peak.bytes / n;
    }
    for (const ReachedPeak& peak : peaks_) {
      const double off = size_of(peak.batch) - x;
      xx += off * off;
      xy += off * (peak.bytes - y);
    }
    if (xx <= 0) return;
    Curve curve;
    curve.*slope = xy / xx;
    curve.base = y - xy / xx * x;
    AddIfItFits(curve);
  }

  // Least squares by both, around the means.
  void AddBoth() {
    double x = 0, q = 0, y = 0, xx = 0, xq = 0, qq = 0, xy = 0, qy = 0;
    const auto n = static_cast<double>(peaks_.size());
    for (const ReachedPeak& peak : peaks_) {
      x += peak.batch.elements / n;
      q += SquareOf(peak.batch) / n;
      y += peak.bytes / n;
    }
    for (const ReachedPeak& peak : peaks_) {
      const double by_x = peak.batch.elements - x, by_q = SquareOf(peak.batch) - q, by_y = peak.bytes - y;
      xx += by_x * by_x, xq += by_x * by_q, qq += by_q * by_q, xy += by_x * by_y, qy += by_q * by_y;
    }
    const double determinant = xx * qq - xq * xq;
    if (determinant <= 1e-9 * xx * qq) return;  // rows of one width alone
    const double per_element = (xy * qq - qy * xq) / determinant,
                 per_square = (qy * xx - xy * xq) / determinant;
    AddIfItFits({y - per_element * x - per_square * q, per_element, per_square, 0});
  }

  // None holds less than what stays, nor less of a larger batch.
  void AddIfItFits(Curve curve) {
    if (curve.per_element < 0 || curve.per_square < 0 || curve.base < stays_ - kFits * highest_) return;
    for (const ReachedPeak& peak : peaks_) {
      const double at =
          curve.base + curve.per_element * peak.batch.elements + curve.per_square * SquareOf(peak.batch);
      curve.misses = std::max(curve.misses, std::abs(at - peak.bytes));
    }
    if (curve.misses <= kFits * highest_) curves_.push_back(curve);
  }

  void Add(double base, double per_element, double per_square) {
    curves_.push_back({base, per_element, per_square, 0});
  }

  std::vector<ReachedPeak> peaks_;
  double stays_, gradients_, weights_;
  bool of_tokens_ = false;
  double highest_ = 0;
  std::vector<Curve> curves_;
};

std::optional<PeakCurve> PeakCurve::Through(const HeldMemory& held) { return CurveFitter(held).Fit(); }

PeakCurve::Range PeakCurve::At(const BatchSize& batch) const {
  const double beyond = std::max(1.0, batch.elements / largest_);
  Range range;
  for (const Curve& curve : curves_) {
    const double at = curve.base + curve.per_element * batch.elements + curve.per_square * SquareOf(batch);
    const double low = at - curve.misses * beyond, high = at + curve.misses * beyond;
    const bool first = &curve == &curves_.front();
    range.expected = first ? at : range.expected;
    range.low = first ? low : std::min(range.low, low);
    range.high = first ? high : std::max(range.high, high);
  }
  return range;
}

}  // namespace fullbore::diagnose
