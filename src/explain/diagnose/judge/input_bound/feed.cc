#include "explain/diagnose/judge/input_bound/feed.h"

#include <algorithm>

namespace fullbore::diagnose {

using record::Share;

Sampled ShareOfFeed(const RankView& rank, int64_t fed, int64_t beside) {
  const double share = rank.Ratio(Share::kDataWait);
  const double both = share + rank.Ratio(record::HostOther::kUnnamed);
  const Sampled of_both = SampledRatio(fed, fed + beside);
  return {share, std::min(share, both * of_both.low), std::max(share, both * of_both.high)};
}

std::optional<replay::Pipeline> PipelineOfFeed(const View& view, Feeder feeder, double fetch_ns,
                                               double fetch_cpu_ns, double waited, double share) {
  auto pipeline = OwnPipeline(view, feeder, fetch_ns, fetch_cpu_ns, waited);
  if (!pipeline) return std::nullopt;
  const double rest = std::max(0.01, 1 - view.lead().Ratio(Share::kDataWait));
  for (double& ns : pipeline->consume_ns) ns *= (1 - share) / rest;
  return pipeline;
}

}  // namespace fullbore::diagnose
