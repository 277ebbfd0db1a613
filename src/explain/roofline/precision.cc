#include "explain/roofline/precision.h"

#include <algorithm>

namespace fullbore::roofline {
namespace {

// What 16-bit products reach of the peak: in published traces 0.62 (language model, H100), 0.36 (the same, MI300X),
// 0.27 and 0.11 (small transformers on both); docs/measurements.md. Of the bandwidth, where that is the limit.
constexpr std::array<double, 3> kReached = {0.15, 0.35, 0.60};
constexpr double kOfBandwidth = 0.8;
constexpr double kStartNs = 2000;  // of a kernel with next to nothing to do
// What they reach of float32's peak without tensor cores, for where shapes are not known: 0.43 and 0.74 (V100).
constexpr double kReachedWithout = 0.6;

bool WouldUseThem(const record::RooflineOperator& one) {
  return std::ranges::any_of(one.why, [](const record::RooflineWhy& why) {
    return why.reason == record::RooflineReason::kNoTensorCores;
  });
}

}  // namespace

std::optional<std::array<double, 3>> LeftOnTensorCores(const record::Roofline* judged, const Device& device) {
  if (!HasTensorCores(device)) return std::nullopt;
  const double peak = std::max(device.tflops.fp16, device.tflops.bf16) * 1e12;
  double now_ns = 0;
  std::array<double, 3> then_ns{};
  if (judged != nullptr) {
    for (const record::RooflineOperator& one : judged->operators) {
      if (!WouldUseThem(one) || !one.flops || !one.bytes) continue;
      const auto each_ns =
          static_cast<double>(one.device_ns) / static_cast<double>(std::max<int64_t>(1, one.count));
      now_ns += static_cast<double>(one.device_ns);
      const double memory_ns = *one.bytes / 2 / (device.bytes_per_s() * kOfBandwidth) * 1e9;
      for (size_t i = 0; i < then_ns.size(); ++i) {
        const double arithmetic_ns = *one.flops / (peak * kReached[i]) * 1e9;
        then_ns[i] +=
            static_cast<double>(one.count) * std::min(each_ns, kStartNs + std::max(arithmetic_ns, memory_ns));
      }
    }
  }
  std::array<double, 3> left{};
  for (size_t i = 0; i < left.size(); ++i)
    left[i] = now_ns > 0 ? then_ns[i] / now_ns
                         : std::min(1.0, device.tflops.fp32 * 1e12 * kReachedWithout / (peak * kReached[i]));
  return left;
}

}  // namespace fullbore::roofline
