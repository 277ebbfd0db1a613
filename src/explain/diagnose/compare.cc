#include "explain/diagnose/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "base/text.h"
#include "explain/diagnose/between_starts.h"
#include "explain/diagnose/logged.h"
#include "explain/diagnose/setup.h"
#include "explain/diagnose/tokens.h"

namespace fullbore::diagnose {

namespace {

constexpr double kShareMoved = 0.01;
constexpr int64_t kFewSteps = 20;
constexpr double kNearlyUsedUp = 0.9;
constexpr double kIdleBytesPerS = 1e5;
constexpr double kResourceMoved = 0.10;  // relative to the larger

// Facts that differ between any two runs and say nothing.
const std::set<std::string>& NoisyFacts() {
  static const std::set<std::string> noisy = {"checkpoints", "hook_ns",    "lost_events",  "memory",
                                              "missed_ns",   "trace_file", "trace_events", "trace_holds"};
  return noisy;
}

struct Rate {
  double value = 0;
  double half = 0;  // half of the 95 % interval; negative where unknown
};

enum class RateUnit : uint8_t { kSteps, kSamples, kTokens };

double UsefulTokensOfASample(const Diagnosis& diagnosis) {
  return *diagnosis.useful_tokens_per_s / *diagnosis.samples_per_s;
}

RateUnit RateUnitOf(const Diagnosis& before, const Diagnosis& after) {
  if (!before.samples_per_s || !after.samples_per_s) return RateUnit::kSteps;
  if (!before.useful_tokens_per_s || !after.useful_tokens_per_s) return RateUnit::kSamples;
  const bool alike = AreOfTheSameSamples(UsefulTokensOfASample(before), UsefulTokensOfASample(after));
  return alike ? RateUnit::kSamples : RateUnit::kTokens;
}

std::string_view Name(RateUnit unit) {
  switch (unit) {
    case RateUnit::kSteps:
      return "steps/s";
    case RateUnit::kSamples:
      return "samples/s";
    case RateUnit::kTokens:
      return "useful tokens/s";
  }
  return "";
}

Rate RateOf(const Diagnosis& diagnosis, RateUnit unit) {
  if (unit == RateUnit::kSteps) {
    Rate rate{diagnosis.steps_per_s, -1};
    // A trace of a few steps has artefacts of the profiler's own start and end: the median ignores them.
    if (diagnosis.device_shares && diagnosis.steps < kFewSteps && diagnosis.median_step_ns > 0) {
      rate.value = 1e9 / diagnosis.median_step_ns;
    }
    if (diagnosis.samples_per_s && diagnosis.samples_per_s_high && *diagnosis.samples_per_s > 0) {
      rate.half = rate.value * (*diagnosis.samples_per_s_high / *diagnosis.samples_per_s - 1);
    }
    return rate;
  }
  Rate rate{*diagnosis.samples_per_s, -1};
  if (diagnosis.samples_per_s_high) rate.half = *diagnosis.samples_per_s_high - rate.value;
  if (unit == RateUnit::kTokens) {
    rate.half *= UsefulTokensOfASample(diagnosis);
    rate.value = *diagnosis.useful_tokens_per_s;
  }
  return rate;
}

void CompareRates(const Diagnosis& before, const Diagnosis& after, Comparison& comparison) {
  const RateUnit unit = RateUnitOf(before, after);
  comparison.rate_unit = Name(unit);
  const Rate a = RateOf(before, unit), b = RateOf(after, unit);
  comparison.rate_before = a.value;
  comparison.rate_after = b.value;
  if (a.value <= 0 || b.value <= 0) return;
  comparison.speedup = b.value / a.value;
  comparison.speedup_low = comparison.speedup_high = comparison.speedup;
  if (a.half < 0 || b.half < 0) return;
  // Of the logarithm of a ratio of independent means, to first order.
  const double half = std::hypot(a.half / a.value, b.half / b.value, BetweenStarts(before, after));
  comparison.interval_known = true;
  comparison.speedup_low = comparison.speedup * std::exp(-half);
  comparison.speedup_high = comparison.speedup * std::exp(half);
  comparison.significant = comparison.speedup_low > 1 || comparison.speedup_high < 1;
}

double ValueOr0(const std::map<std::string, double>& map, const std::string& key) {
  const auto at = map.find(key);
  return at == map.end() ? 0 : at->second;
}

std::optional<ShareMove> MoveIn(const ShareMoves& moves, const std::string& name) {
  const auto move = moves.find(name);
  return move == moves.end() ? std::nullopt : std::optional(move->second);
}

void CompareShares(const Diagnosis& before, const Diagnosis& after, const ShareMoves& moves,
                   Comparison& comparison) {
  std::set<std::string> names;
  for (const auto& [name, share] : before.shares) names.insert(name);
  for (const auto& [name, share] : after.shares) names.insert(name);
  for (const std::string& name : names) {
    const double a = ValueOr0(before.shares, name), b = ValueOr0(after.shares, name);
    if (std::abs(a - b) >= kShareMoved)
      comparison.shares.push_back({name, "ratio", a, b, "", "", MoveIn(moves, name)});
  }
  std::stable_sort(comparison.shares.begin(), comparison.shares.end(), [](const Change& x, const Change& y) {
    return std::abs(*x.after - *x.before) > std::abs(*y.after - *y.before);
  });
}

// "process_cpu" also names "process_cpu{role=loader}".
bool IsNamedIn(const Diagnosis& diagnosis, const std::string& key) {
  for (const Finding& finding : diagnosis.findings) {
    for (const Evidence& evidence : finding.evidence) {
      if (!evidence.series.empty() && (key == evidence.series || key.starts_with(evidence.series + "{")))
        return true;
    }
  }
  return false;
}

// A ratio near one, or an amount in use near the total.
bool IsNearlyUsedUp(const Diagnosis& diagnosis, const std::string& key) {
  const Resource& resource = diagnosis.resources.at(key);
  if (resource.unit == "ratio") return resource.mean >= kNearlyUsedUp;
  const size_t used = key.find("_used");
  if (used == std::string::npos) return false;
  const auto total = diagnosis.resources.find(std::string(key).replace(used, 5, "_total"));
  return total != diagnosis.resources.end() && resource.mean >= kNearlyUsedUp * total->second.mean;
}

void CompareResources(const Diagnosis& before, const Diagnosis& after, Comparison& comparison) {
  const auto moved = [](const Change& change) {
    const double larger = std::max(std::abs(*change.before), std::abs(*change.after));
    return larger > 0 ? std::abs(*change.after - *change.before) / larger : 0;
  };
  for (const auto& [name, resource] : before.resources) {
    const auto at = after.resources.find(name);
    if (at == after.resources.end()) continue;
    Change change{name, resource.unit, resource.mean, at->second.mean, "", "", {}};
    // A ratio that moves by less than a percentage point has not changed.
    if (resource.unit == "ratio" && std::abs(*change.after - *change.before) < kShareMoved) continue;
    if (resource.unit == "bytes/s" && std::max(*change.before, *change.after) < kIdleBytesPerS) continue;
    if (moved(change) >= kResourceMoved) comparison.resources.push_back(std::move(change));
  }
  // Ratios have a common scale, so their differences are comparable as they are.
  const auto weight = [&](const Change& change) {
    const bool named = IsNamedIn(before, change.what) || IsNamedIn(after, change.what);
    const bool scarce = IsNearlyUsedUp(before, change.what) || IsNearlyUsedUp(after, change.what);
    const double by = change.unit == "ratio" ? std::abs(*change.after - *change.before) : moved(change);
    return std::make_tuple(named, scarce, by);
  };
  std::stable_sort(comparison.resources.begin(), comparison.resources.end(),
                   [&](const Change& x, const Change& y) { return weight(x) > weight(y); });
}

void CompareFacts(const Diagnosis& before, const Diagnosis& after, Comparison& comparison) {
  std::set<std::string> keys;
  for (const auto& [key, value] : before.facts) keys.insert(key);
  for (const auto& [key, value] : after.facts) keys.insert(key);
  for (const std::string& key : keys) {
    const auto a = before.facts.find(key), b = after.facts.find(key);
    const std::string from = a == before.facts.end() ? "" : a->second,
                      to = b == after.facts.end() ? "" : b->second;
    if (from != to && !NoisyFacts().count(key)) comparison.facts.push_back({key, "", {}, {}, from, to, {}});
  }
}

void CompareLogged(const Diagnosis& before, const Diagnosis& after, Comparison& comparison) {
  for (const LoggedTogether& together : Together({&before, &after})) {
    const auto add = [&](const std::string& what, const std::vector<std::optional<double>>& values) {
      comparison.logged.push_back(
          {what, "", values[0], values[1], LoggedText(values[0]), LoggedText(values[1]), {}});
    };
    add(together.WhereText(), together.there);
    if (together.at_end != together.there) add(together.EndText(), together.at_end);
  }
}

bool Names(const std::vector<Finding>& findings, const std::string& id) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& f) { return f.id == id; });
}

// Whether the first finding's cause was removed in between: it is gone, or costs at most half of what it did.
bool WasTreated(const Diagnosis& before, const Diagnosis& after) {
  const Finding& first = before.findings.front();
  return std::none_of(after.findings.begin(), after.findings.end(),
                      [&](const Finding& f) { return f.id == first.id && f.share > first.share / 2; });
}

std::string FactOr(const std::map<std::string, std::string>& facts, const std::string& key) {
  const auto at = facts.find(key);
  if (at == facts.end()) return "";
  const std::string& text = at->second;  // a variable of the environment is a text
  const bool quoted = text.size() > 1 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// A variable for the threads also becomes the number of threads, and workers prefetch.
bool FollowsFrom(const std::map<std::string, std::string>& wanted, const std::string& fact) {
  return wanted.contains(fact) || (fact == "torch_threads" && wanted.contains("omp_num_threads"));
}

// Which facts that decide how fast a run is differ, besides those that the advised change leaves behind.
std::vector<std::string> OtherChanges(const std::map<std::string, std::string>& wanted,
                                      const std::vector<Change>& facts) {
  std::vector<std::string> others;
  for (const Change& fact : facts) {
    if (DecidesSpeed(fact.what) && !FollowsFrom(wanted, fact.what)) others.push_back(fact.what);
  }
  return others;
}

// A recording that cannot be judged has no findings, which says nothing of what it might have.
void CompareFindings(const Diagnosis& before, const Diagnosis& after, Comparison& comparison) {
  if (!before.fitness.CanBeJudged() || !after.fitness.CanBeJudged()) return;
  for (const Finding& finding : before.findings) {
    if (!Names(after.findings, finding.id)) comparison.findings_gone.push_back(finding.id);
  }
  for (const Finding& finding : after.findings) {
    if (!Names(before.findings, finding.id)) comparison.findings_new.push_back(finding.id);
  }
}

// By the facts that it leaves behind where it leaves any, else by the cause, which is gone.
bool WasMade(const std::map<std::string, std::string>& wanted, const Diagnosis& before,
             const Diagnosis& after) {
  if (wanted.empty()) return WasTreated(before, after);
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& fact) {
    return FactOr(after.facts, fact.first) == fact.second && FactOr(before.facts, fact.first) != fact.second;
  });
}

void JudgePrediction(const Diagnosis& before, const Diagnosis& after, Comparison& comparison) {
  if (before.findings.empty() || before.findings.front().method.empty()) return;
  const Finding& first = before.findings.front();
  comparison.predicted = first.speedup;
  comparison.advised = first.change.empty() && !first.fix.empty() ? first.fix.front() : first.change;
  const auto wanted = FactsOfChange(first.change);
  comparison.other_changes = OtherChanges(wanted, comparison.facts);
  const Speedup& predicted = first.speedup;
  if (!before.fitness.CanBeJudged() ||
      !after.fitness.CanBeJudged()) {  // NOLINT(bugprone-branch-clone): the order
    comparison.prediction = Prediction::kTooNoisy;
  } else if (!comparison.other_changes.empty()) {
    comparison.prediction = Prediction::kAnotherChange;
  } else if (!WasMade(wanted, before, after)) {
    comparison.prediction = Prediction::kNotTested;
  } else if (!comparison.interval_known ||
             (comparison.speedup_low <= 1 && comparison.speedup_high >= predicted.low)) {
    comparison.prediction = Prediction::kTooNoisy;
  } else {
    const bool meet = predicted.low <= comparison.speedup_high && comparison.speedup_low <= predicted.high;
    comparison.prediction = meet ? Prediction::kHeld : Prediction::kMissed;
  }
}

}  // namespace

std::string_view Name(Prediction prediction) {
  switch (prediction) {
    case Prediction::kNone:
      return "";
    case Prediction::kNotTested:
      return "not-tested";
    case Prediction::kAnotherChange:
      return "another-change";
    case Prediction::kTooNoisy:
      return "too-noisy";
    case Prediction::kHeld:
      return "held";
    case Prediction::kMissed:
      return "missed";
  }
  return "";
}

Comparison Compare(const Diagnosis& before, const Diagnosis& after, const ShareMoves& moves) {
  Comparison comparison;
  CompareRates(before, after, comparison);
  CompareShares(before, after, moves, comparison);
  CompareResources(before, after, comparison);
  CompareFacts(before, after, comparison);
  CompareLogged(before, after, comparison);
  CompareFindings(before, after, comparison);
  JudgePrediction(before, after, comparison);
  return comparison;
}

}  // namespace fullbore::diagnose
