#include "plan/link.h"

#include <algorithm>

#include "explain/replay/change/changes.h"

namespace fullbore::plan {

using record::StepGraph;
using replay::Outlook;

namespace {

constexpr double kBucketBytes = 25 * 1024 * 1024;  // DistributedDataParallel's bucket_cap_mb

double At(const std::array<double, 3>& values, Outlook outlook) {
  return values[static_cast<size_t>(outlook)];
}

}  // namespace

double RingPart(int64_t gpus) {
  return gpus > 1 ? 2.0 * static_cast<double>(gpus - 1) / static_cast<double>(gpus) : 0;
}

replay::Prediction ExposedNs(double gradient_bytes, int64_t gpus, const Bandwidth& bandwidth,
                             double backward_ns) {
  const auto ring_ns = [&](Outlook outlook) {
    return RingPart(gpus) * gradient_bytes / At(bandwidth, outlook) * 1e9;
  };
  const double last_bucket = gradient_bytes > 0 ? std::min(1.0, kBucketBytes / gradient_bytes) : 0;
  const double expected_ns = ring_ns(Outlook::kExpected), hopeful_ns = ring_ns(Outlook::kHopeful);
  return {std::max(last_bucket * expected_ns, expected_ns - backward_ns), ring_ns(Outlook::kCautious),
          std::max(0.0, hopeful_ns - backward_ns)};
}

std::optional<std::string> OtherLink::WhyNot(const StepGraph& graph) const {
  if (replay::PerStepNs(graph, replay::IsOfGradients) > 0) return std::nullopt;
  return "no exchange of gradients was recorded";
}

double OtherLink::Apply(Outlook outlook, StepGraph& graph) const {
  const double factor = At(factor_, outlook);
  for (StepGraph::Node& node : graph.nodes) {
    if (!replay::IsOfGradients(node)) continue;
    const auto own_ns = static_cast<double>(node.duration_ns - node.wait_ns);
    if (factor == 0) node.wait_ns = node.meeting = 0;  // nobody to wait for
    node.duration_ns = node.wait_ns + static_cast<int64_t>(own_ns * factor);
  }
  return 0;
}

}  // namespace fullbore::plan
