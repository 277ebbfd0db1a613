#include "explain/diagnose/quotes.h"

#include <algorithm>

#include "explain/diagnose/advice.h"

namespace fullbore::diagnose {

namespace {

bool Promises(const Finding& finding) { return !finding.method.empty(); }

// The finding that promises the gain of this change, else one that quoted it; null if none did.
const Finding* QuoteOf(const std::vector<Finding>& findings, const std::string& change) {
  const Finding* found = nullptr;
  for (const Finding& finding : findings) {
    if (finding.quotes == change && (found == nullptr || (Promises(finding) && !Promises(*found))))
      found = &finding;
  }
  return found;
}

}  // namespace

void KeepOneGainOfEach(std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    if (finding.quotes.empty() || !Promises(finding)) continue;
    const bool elsewhere = std::ranges::any_of(findings, [&](const Finding& other) {
      return &other != &finding && Promises(other) && other.quotes == finding.quotes &&
             (other.share > finding.share || (other.share == finding.share && &other < &finding));
    });
    if (!elsewhere) continue;
    DropGain(finding);
    finding.quotes.clear();
  }
}

std::vector<std::string> TakenBack(const std::vector<Finding>& findings) {
  std::vector<std::string> changes;
  for (const Finding& finding : findings) {
    const bool sure = !finding.quotes.empty() && finding.quoted.low > 1;
    if (sure && !Promises(*QuoteOf(findings, finding.quotes))) changes.push_back(finding.quotes);
  }
  return changes;
}

void QuoteFindings(const std::vector<Finding>& findings, std::vector<Rung>& rungs) {
  if (rungs.empty()) return;
  const Finding* finding = QuoteOf(findings, rungs.front().change);
  if (finding == nullptr) return;
  const Speedup quoted = Promises(*finding) ? finding->speedup : finding->quoted;
  const Speedup own = rungs.front().speedup;
  for (Rung& rung : rungs) {
    rung.step_ns *= own.expected / quoted.expected;
    rung.speedup.expected *= quoted.expected / own.expected;
    rung.speedup.low *= quoted.low / own.low;
    rung.speedup.high *= quoted.high / own.high;
  }
}

}  // namespace fullbore::diagnose
