// unstable-steps: some steps take far longer than usual, and no other finding says why.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/judge.h"
#include "explain/diagnose/statistics.h"

namespace fullbore::diagnose {

using record::Share;
using record::Step;

void JudgeSteps(const View& view, Diagnosis& diagnosis) {
  const RankView& rank = view.lead();
  std::vector<double> wall_ns;
  for (const Step* step : rank.steady) wall_ns.push_back(static_cast<double>(step->wall_ns));
  if (wall_ns.size() < static_cast<size_t>(kStepsForCritical)) return;
  const double median = Median(wall_ns), p99 = Quantile(wall_ns, 0.99);
  if (median <= 0 || p99 / median < kUnstable) return;

  // What the slow steps have more of than a usual one.
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
  const double share = excess_ns / static_cast<double>(rank.wall_ns);
  Finding finding;
  finding.id = "unstable-steps";
  finding.share = std::min(share, 1.0);
  finding.severity = share >= kHostOther.warning ? Severity::kWarning : Severity::kInfo;
  finding.title = fmt::format(
      "Steps are uneven: one in a hundred takes {} or more, the median {}; the slow ones spend it in {}.",
      FormatDuration(static_cast<int64_t>(p99)), FormatDuration(static_cast<int64_t>(median)), Name(most));
  finding.fix = {"look at what happens at the slow steps in the report's chart of steps",
                 "inputs of very different size: bucket them by length, or pad to a few fixed sizes"};
  finding.where = view.HottestLines(most);
  finding.evidence.push_back({"99th percentile over median", p99 / median, "ratio", "hook", "", {}, {}});
  finding.evidence.push_back({"slow steps", static_cast<double>(slow), "count", "hook", "", {}, {}});
  if (slow > 2) {
    finding.evidence.push_back({"steps from one slow step to the next, on average",
                                static_cast<double>(last_index - first_index) / static_cast<double>(slow - 1),
                                "count",
                                "hook",
                                "",
                                {},
                                {}});
  }
  // Where another finding already explains that time, it carries the prediction.
  const bool explained =
      std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(), [&](const Finding& f) {
        return (most == Share::kHostOther && f.id == "host-other") ||
               (most == Share::kDataWait &&
                (f.id == "input-bound" || f.id == "worker-overcommit" || f.id == "host-memory"));
      });
  if (!explained) {
    finding.speedup = RemovalOf(finding.share, 0.3);
    finding.method = "slow steps made as fast as the median; at the low end, 30 % of that";
  }
  diagnosis.findings.push_back(std::move(finding));
}

}  // namespace fullbore::diagnose
