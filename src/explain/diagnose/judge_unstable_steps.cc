// unstable-steps: some steps take far longer than usual, and no other finding says why.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge.h"
#include "explain/diagnose/statistics.h"

namespace fullbore::diagnose {

using record::Share;
using record::Step;

std::optional<Finding> JudgeUnstableSteps(const View& view, Diagnosis& /*diagnosis*/) {
  const RankView& rank = view.lead();
  std::vector<double> wall_ns;
  for (const Step* step : rank.steady) wall_ns.push_back(static_cast<double>(step->wall_ns));
  if (wall_ns.size() < static_cast<size_t>(kStepsForCritical)) return std::nullopt;
  const double median = Median(wall_ns), p99 = Quantile(wall_ns, 0.99);
  if (median <= 0 || p99 / median < kUnstable) return std::nullopt;

  // What the slow steps spend more time in than usual ones.
  record::ShareTimes excess{};
  double excess_ns = 0;
  int64_t slow = 0, first_index = -1, last_index = -1;
  for (const Step* step : rank.steady) {
    if (static_cast<double>(step->wall_ns) < kUnstable * median) continue;
    if (first_index < 0) first_index = step->index;
    last_index = step->index;
    ++slow;
    excess_ns += static_cast<double>(step->wall_ns) - median;
    for (size_t i = 0; i < record::kShareCount; ++i) excess[i] += step->share_ns[i];
  }
  const auto most = static_cast<Share>(std::max_element(excess.begin(), excess.end()) - excess.begin());
  // Steps that are only launched are short, until one of them waits for all: their own time is not known.
  if (most == Share::kSync && !rank.info->device_activity) return std::nullopt;
  const double share = excess_ns / static_cast<double>(rank.wall_ns);
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.share = std::min(share, 1.0);
  finding.severity = share >= kHostOther.warning ? Severity::kWarning : Severity::kInfo;
  finding.title = fmt::format(
      "Steps are uneven: one in a hundred takes {} or more, against a median of {}; the slow ones spend the "
      "extra time in {}.",
      FormatDuration(static_cast<int64_t>(p99)), FormatDuration(static_cast<int64_t>(median)), Name(most));
  // Why they are slow is not known, so nothing is promised.
  finding.fix = {"inputs of very different sizes: bucket them by length, or pad to a few fixed sizes",
                 "the report's chart of steps shows when the slow ones come"};
  finding.where = view.HottestLines(most);
  evidence.FromSteps(rank, "99th percentile over median", p99 / median, "ratio");
  evidence.FromSteps(rank, "slow steps", static_cast<double>(slow), "count");
  if (slow > 2) {
    evidence.FromSteps(rank, "steps from one slow step to the next, on average",
                       static_cast<double>(last_index - first_index) / static_cast<double>(slow - 1),
                       "count");
  }
  return finding;
}

}  // namespace fullbore::diagnose
