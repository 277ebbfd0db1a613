#include "explain/analyze/section.h"

#include <algorithm>

namespace fullbore::analyze {

const std::vector<const Section*>& AllSections() {
  static const std::vector<const Section*> all = {&kTemporalBreakdown,
                                                  &kSteps,
                                                  &kOverlap,
                                                  &kIdleBreakdown,
                                                  &kKernelTypes,
                                                  &kKernels,
                                                  &kLaunchSummary,
                                                  &kLaunches,
                                                  &kQueueSummary,
                                                  &kQueueLength,
                                                  &kMemorySummary,
                                                  &kMemoryBandwidth,
                                                  &kOperators,
                                                  &kSequences,
                                                  &kRoofline,
                                                  &kRooflineOperators,
                                                  &kRooflineChains,
                                                  &kCollectives,
                                                  &kSyncs,
                                                  &kCounters,
                                                  &kCriticalPath,
                                                  &kCriticalPathItems};
  return all;
}

const Section* SectionNamed(std::string_view name) {
  const auto& all = AllSections();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Section* section) { return section->name == name; });
  return found == all.end() ? nullptr : *found;
}

}  // namespace fullbore::analyze
