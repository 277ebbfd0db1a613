#include "explain/diagnose/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "explain/diagnose/thresholds.h"

namespace fullbore::diagnose {

namespace {

bool IsPredicted(const Finding& finding) { return !finding.method.empty(); }

// In words, so that nobody reads "faster" beside a range that reaches below 1.
std::string NothingSure(const Speedup& speedup) {
  if (speedup.low > 1) return fmt::format("not worth changing for speed: {:.2f}x at most", speedup.high);
  return fmt::format(
      "no change is sure to gain here: the likeliest one gives between {:.2f}x and {:.2f}x of the speed",
      speedup.low, speedup.high);
}

}  // namespace

bool IsWorthwhile(const Speedup& speedup) { return speedup.low > 1 && speedup.expected >= kWorthwhileGain; }

void DropGain(Finding& finding) {
  finding.method.clear();
  finding.speedup = {};
  finding.costs = replay::Cost::kCode;
}

void Withdraw(Finding& finding) {
  finding.fix = finding.otherwise;
  if (finding.fix.empty()) finding.fix = {NothingSure(finding.speedup)};
  finding.change.clear();
  finding.severity = Severity::kInfo;
  DropGain(finding);
}

void RankByGain(std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    if (!IsPredicted(finding) || finding.speedup.low > 1) continue;
    if (finding.speedup.low < 1 && !finding.change.empty())
      Withdraw(finding);
    else
      DropGain(finding);
  }
  const auto key = [](const Finding& finding) {
    // At equal gains, what changes neither results nor memory.
    const int costs = -static_cast<int>(finding.costs);
    return std::make_tuple(finding.stands_still, !finding.open, finding.speedup.low, costs, finding.severity,
                           finding.share);
  };
  std::ranges::stable_sort(findings, [&](const Finding& a, const Finding& b) { return key(a) > key(b); });
  if (!findings.empty() && IsPredicted(findings.front()) && !IsWorthwhile(findings.front().speedup))
    Withdraw(findings.front());
}

}  // namespace fullbore::diagnose
