// unexplained: much of the step is not computation, and no finding says why: several causes that are each too small, or
// too little was seen of them. Such a run is not healthy.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/judge/sync_bound_host.h"

namespace fullbore::diagnose {

using record::Share;

namespace {

std::string_view ForPeople(Share share) {
  switch (share) {
    case Share::kCommExposed:
      return "collectives that nothing hides";
    case Share::kCopyExposed:
    case Share::kH2d:
      return "copies between host and device";
    case Share::kDataWait:
      return "waiting for data";
    case Share::kSync:
      return "waiting behind synchronisations";
    case Share::kLaunch:
      return "waiting for launches";
    case Share::kHostOther:
      return "other work of the host";
    case Share::kGap:
      return "gaps between queued kernels";
    case Share::kCompute:
    case Share::kForward:
    case Share::kBackward:
    case Share::kOptimizer:
      return "computation";
  }
  return "";
}

}  // namespace

bool IsComputation(Share share) {
  return share == Share::kCompute || share == Share::kForward || share == Share::kBackward ||
         share == Share::kOptimizer;
}

std::optional<Finding> JudgeUnexplained(const View& view, Diagnosis& diagnosis) {
  if (!NothingCostsMuch(diagnosis)) return std::nullopt;
  const RankView& rank = view.lead();
  std::vector<std::pair<double, Share>> others;
  double all = 0;
  for (size_t i = 0; i < record::kShareCount; ++i) {
    const auto share = static_cast<Share>(i);
    if (IsComputation(share) || IsWaitForComputation(view, share) || rank.Ratio(share) <= 0) continue;
    others.emplace_back(rank.Ratio(share), share);
    all += rank.Ratio(share);
  }
  std::ranges::stable_sort(others, [](const auto& a, const auto& b) { return a.first > b.first; });
  if (others.empty() || others.front().first < kHealthy) return std::nullopt;
  const bool sampled = view.sampling().has_value();  // there are no steps
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.severity = Severity::kWarning;
  finding.share = all;
  finding.title =
      fmt::format("{} {} computation, and no single cause costs enough, or is sure enough, to be a finding.",
                  FormatPercent(all), sampled ? "of the samples are not" : "of the step is not");
  constexpr size_t kListed = 4;
  for (size_t i = 0; i < std::min(others.size(), kListed); ++i)
    evidence.FromSteps(rank, std::string(ForPeople(others[i].second)), others[i].first, "ratio");
  finding.fix = {
      sampled ? "sample it for longer (explain --pid PID --for 2m), or start it under fullbore run the next "
                "time: that shows its steps"
              : "record a trace with the profiler's stacks (with_stack=True), or more steps: which of these "
                "shares grows, and in which lines?"};
  PointAtWorstStep(rank, others.front().second, finding);
  return finding;
}

}  // namespace fullbore::diagnose
