#include "explain/diagnose/view_fitness.h"

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/noise.h"
#include "explain/replay/observer.h"
#include "explain/replay/simulate.h"

namespace fullbore::diagnose {

namespace {

fitness::Known KnownOf(const record::RankInfo& info, const View& view) {
  fitness::Known known;
  known.noticed = info.noticed;
  known.device = info.device_activity;
  known.live = view.recording().source == "run" && !info.device_activity;
  known.operations = known.kernels = info.kernels.value_or(0);
  if (info.tables) {
    for (const record::CopyStats& copies : info.tables->copies) known.operations += copies.count;
  }
  if (const auto events = info.facts.find("trace_events"); events != info.facts.end())
    known.events = ParseInt(events->second).value_or(0);
  if (const auto missed = info.facts.find("missed_ns"); missed != info.facts.end())
    known.missed_ns = ParseInt(missed->second).value_or(0);
  if (!info.roofline) return known;
  known.shapes = std::ranges::any_of(info.roofline->operators, [](const record::RooflineOperator& one) {
    return one.flops.has_value() || one.bytes.has_value();
  });
  if (const auto& steps = info.roofline->steps; steps && steps->floor_ns && steps->device_ns > 0)
    known.work_known = static_cast<double>(steps->judged_ns) / static_cast<double>(steps->device_ns);
  return known;
}

std::optional<fitness::Known::Unwatched> WithoutItsProfiler(const record::RankInfo& info) {
  if (!info.graph || !replay::IsWatched(*info.graph)) return std::nullopt;
  const auto step_ns = [&](replay::Outlook cost) {
    return replay::StepNs(replay::Unwatched(*info.graph, cost));
  };
  return fitness::Known::Unwatched{replay::StepNs(*info.graph), step_ns(replay::Outlook::kHopeful),
                                   step_ns(replay::Outlook::kExpected), step_ns(replay::Outlook::kCautious)};
}

}  // namespace

fitness::Fitness FitnessOf(const View& view) {
  const std::vector<record::RankInfo>& ranks = view.stage().ranks;
  const record::RankInfo* judged = view.HasSteps() ? view.lead().info
                                   : ranks.empty() ? nullptr
                                                   : &ranks.front();
  fitness::Known known = judged != nullptr ? KnownOf(*judged, view) : fitness::Known();
  if (view.HasSteps()) {
    const RankView& lead = view.lead();
    known.steps = lead.steps;
    known.wall_ns = lead.wall_ns;
    known.warmup_ns = lead.warmup_ns;
    known.bare_steps = lead.bare_steps;
    known.unwatched = WithoutItsProfiler(*lead.info);
  }
  known.doubt = DoubtOf(view);
  fitness::Fitness fitness = fitness::FitnessOf(known);
  for (const record::RankInfo& info : ranks) {
    if (&info != judged) fitness::AddRank(info.rank, KnownOf(info, view), fitness);
  }
  return fitness;
}

}  // namespace fullbore::diagnose
