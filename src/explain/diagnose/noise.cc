#include "explain/diagnose/noise.h"

#include <algorithm>

#include "explain/diagnose/advice.h"
#include "explain/diagnose/statistics.h"
#include "explain/diagnose/thresholds.h"
#include "explain/fitness/thresholds.h"

namespace fullbore::diagnose {

using fitness::Doubt;
using record::Metric;

namespace {

constexpr double kSureInNoise = 0.5;  // of a gain that the noise covers: a choice

// Other programs may slow what the step waits for by as much as they take of the cores. A wait that would remain without
// them stays what it is: 97 % of a step does not come from half of the cores.
bool OthersMayBeTheCause(const Finding& finding, const Doubt& doubt) {
  if (!doubt.contended_cores || doubt.cores <= 0) return false;
  const double alone =
      std::max(0.0, 1 - *doubt.contended_cores / doubt.cores);  // of the time that the wait's work takes
  return alone - (1 - finding.share) < kHealthy;
}

}  // namespace

Doubt DoubtOf(const View& view) {
  Doubt doubt;
  doubt.cores = view.cores();
  if (view.HasSteps()) {
    // Steps far beyond the usual have a cause that a finding names; what is left is how unsteady the machine is. A
    // last batch that is smaller than the others is not noise, so the rate is that of samples where they are known.
    std::vector<double> done, wall_ns;
    for (const record::Step* step : view.lead().steady) {
      done.push_back(view.lead().info->samples_known ? static_cast<double>(step->samples) : 1);
      wall_ns.push_back(static_cast<double>(step->wall_ns));
    }
    const double usual = kUnstable * Median(wall_ns);
    for (double& ns : wall_ns) ns = std::min(ns, usual);
    if (const auto rate = RatioInterval(done, wall_ns); rate && rate->mean > 0)
      doubt.of_mean_step = (rate->high - rate->mean) / rate->mean;
    // The seconds of a sampling are all alike long; what is uncertain is the shares.
    if (const auto sampling = view.sampling()) doubt.of_mean_step = sampling->points, doubt.sampled = true;
  }
  const auto others = view.CoresOfOthers(), busy = view.Mean(Metric::kCpuUtilization);
  if (others && busy && view.cores() > 0 && *busy >= kCpuSaturated && *others >= kOthersBusy * view.cores())
    doubt.contended_cores = others;
  return doubt;
}

void Widen(Finding& finding, const Doubt& doubt) {
  finding.doubtful = OthersMayBeTheCause(finding, doubt);
  if (finding.method.empty()) return;
  const bool drowns = finding.speedup.low - 1 < doubt.of_mean_step;
  if (doubt.of_mean_step >= fitness::kTooNoisy && drowns) return DropGain(finding);
  // Doubt about the figures does not make the change harmful: what it gains is a part of the steps, and the noise is in
  // all of them. It takes half of a gain at most.
  const double gain = finding.speedup.low - 1;
  if (gain >= 0)
    finding.speedup.low =
        1 + std::max(gain * kSureInNoise, finding.speedup.low / (1 + doubt.of_mean_step) - 1);
  finding.speedup.high *= 1 + doubt.of_mean_step;
}

}  // namespace fullbore::diagnose
