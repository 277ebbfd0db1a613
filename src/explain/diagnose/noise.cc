#include "explain/diagnose/noise.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/advice.h"
#include "explain/diagnose/statistics.h"
#include "explain/diagnose/thresholds.h"

namespace fullbore::diagnose {

using record::Metric;

namespace {

constexpr double kSureInNoise = 0.5;  // of a gain that the noise covers: a choice

}  // namespace

Noise NoiseOf(const View& view) {
  Noise noise;
  noise.cores = view.cores();
  noise.single_step = view.IsSingleStep();
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
      noise.of_mean_step = (rate->high - rate->mean) / rate->mean;
    // The seconds of a sampling are all alike long; what is uncertain is the shares.
    if (const auto sampling = view.sampling()) noise.of_mean_step = sampling->points, noise.sampled = true;
  }
  const auto others = view.CoresOfOthers(), busy = view.Mean(Metric::kCpuUtilization);
  if (others && busy && view.cores() > 0 && *busy >= kCpuSaturated && *others >= kOthersBusy * view.cores())
    noise.contended_cores = others;
  return noise;
}

std::string InWords(const Noise& noise) {
  if (noise.single_step)
    return "Only one step counts: its figures may be an accident, and no gain is predicted from it.";
  const bool wide = noise.of_mean_step >= kNoisy && !noise.sampled;
  if (!noise.contended_cores && !wide) return "";
  const std::string known =
      fmt::format("the mean step is only known to ±{}", FormatPercent(noise.of_mean_step));
  std::string text = noise.contended_cores
                         ? fmt::format("Noisy: other programs keep {} of {} cores busy{}",
                                       FormatCount(*noise.contended_cores), FormatCount(noise.cores),
                                       wide ? ", and " + known : "")
                         : fmt::format("Noisy: steps vary so much that {}", known);
  text += noise.of_mean_step >= kTooNoisy
              ? "; a gain smaller than that cannot be told. Measure again when the machine is quiet."
              : ". Take every figure with that in mind.";
  return text;
}

void Widen(Finding& finding, const Noise& noise) {
  if (finding.method.empty()) return;
  if (noise.single_step) return DropGain(finding);
  const bool drowns = finding.speedup.low - 1 < noise.of_mean_step;
  if (noise.of_mean_step >= kTooNoisy && drowns) return DropGain(finding);
  // Doubt about the figures does not make the change harmful: what it gains is a part of the steps, and the noise is in
  // all of them. It takes half of a gain at most.
  const double gain = finding.speedup.low - 1;
  if (gain >= 0)
    finding.speedup.low =
        1 + std::max(gain * kSureInNoise, finding.speedup.low / (1 + noise.of_mean_step) - 1);
  finding.speedup.high *= 1 + noise.of_mean_step;
}

}  // namespace fullbore::diagnose
