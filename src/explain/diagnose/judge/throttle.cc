// throttle: the device was held back by heat or by its power limit.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"

namespace fullbore::diagnose {

using record::Metric;

std::optional<Finding> JudgeThrottle(const View& view, Diagnosis& /*diagnosis*/) {
  const double thermal = view.Mean(Metric::kGpuThrottleThermal).value_or(0),
               power = view.Mean(Metric::kGpuThrottlePower).value_or(0);
  if (std::max(thermal, power) < kThrottled) return std::nullopt;
  const bool hot = thermal >= kThrottled;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.cause = hot ? "thermal" : "power";
  // A device at its power limit works as hard as it was built to; one at its temperature limit is poorly
  // cooled.
  finding.severity = hot ? Severity::kWarning : Severity::kInfo;
  finding.share = hot ? std::min(1.0, thermal) : 0;
  finding.title = fmt::format("The GPU was held back by {} {} of the time.", hot ? "heat" : "its power limit",
                              FormatPercent(hot ? thermal : power));
  finding.fix = {hot ? "check the cooling (nvidia-smi -q -d PERFORMANCE,TEMPERATURE): air flow, fans, a "
                       "neighbour that heats it"
                     : "see whether the power limit was lowered (nvidia-smi -q -d POWER)",
                 "another device may be cooler or less limited"};
  evidence.FromMetric(Metric::kGpuThrottleThermal, "time held back by heat", thermal);
  evidence.FromMetric(Metric::kGpuThrottlePower, "time held back by the power limit", power);
  const auto clock = view.Mean(Metric::kGpuSmClock), most = view.Max(Metric::kGpuSmClockMax);
  // How much of the step follows the clock is not known (memory-bound work does not), so nothing is promised.
  if (clock && most && *most > 0)
    evidence.FromMetric(Metric::kGpuSmClock, "SM clock relative to its maximum", *clock / *most, "ratio");
  return finding;
}

}  // namespace fullbore::diagnose
