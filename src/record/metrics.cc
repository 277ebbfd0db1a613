#include "record/metrics.h"

namespace fullbore::record {

namespace {

constexpr double kRatio = 0.001;
constexpr double kCoarseRatio = 0.01;  // for kinds with many series
constexpr double kMiB = 1 << 20;
constexpr double kRateStep = 4096;  // bytes a second: a page
constexpr Rate kFast = Rate::kFast;
constexpr Rate kSlow = Rate::kSlow;

constexpr MetricInfo kMetrics[] = {
#define METRIC(identifier, ...) {Metric::identifier, __VA_ARGS__},
#include "record/metrics.inc"
#undef METRIC
};

}  // namespace

std::span<const MetricInfo> AllMetrics() { return kMetrics; }

const MetricInfo& InfoOf(Metric metric) { return kMetrics[static_cast<size_t>(metric)]; }

std::string_view Name(Metric metric) { return InfoOf(metric).name; }

SeriesKey KeyOf(Metric metric, Labels labels) {
  const MetricInfo& info = InfoOf(metric);
  return {std::string(info.name), std::string(info.unit), std::move(labels), info.resolution};
}

std::string LabelledName(const SeriesKey& key) {
  std::string labels;
  for (const auto& [label, value] : key.labels) labels += (labels.empty() ? "" : ",") + label + "=" + value;
  return labels.empty() ? key.name : key.name + "{" + labels + "}";
}

}  // namespace fullbore::record
