#include "fleet/nodes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "explain/diagnose/statistics.h"

namespace fullbore::fleet {

namespace {

constexpr size_t kFewest = 5, kFewestMachines = 3;
constexpr double kSlow = 0.95, kRarely = 0.01;

using Work = std::tuple<std::string, std::string, std::string, std::string, int64_t>;

struct Rate {
  const std::string& node;
  double per_s = 0;
};

struct Seen {
  std::vector<double> ratios;
  size_t below = 0, above = 0, works = 0;

  void Compare(double own, double before, double after) {
    ratios.push_back(own / ((before + after) / 2));
    if (own < std::min(before, after)) ++below;
    if (own > std::max(before, after)) ++above;
  }
};

// `rates`: of one work, in the order of time.
void CompareIn(const std::vector<Rate>& rates, const std::string& node, Seen& seen) {
  double before = 0;        // of the last run elsewhere that is in no comparison yet; 0 for none
  std::vector<double> own;  // since then
  for (const Rate& rate : rates) {
    if (rate.node == node) {
      if (before > 0) own.push_back(rate.per_s);
    } else if (before > 0 && !own.empty()) {
      seen.Compare(diagnose::Median(own), before, rate.per_s);
      before = 0;
      own.clear();
    } else {
      before = rate.per_s;
    }
  }
}

std::map<Work, std::vector<Rate>> RatesOf(const std::vector<RunAccount>& runs) {
  std::vector<const RunAccount*> known;
  for (const RunAccount& run : runs) {
    const bool has_rate = run.steps_per_s > 0 && std::isfinite(run.steps_per_s);
    if (!run.node.empty() && !run.command.empty() && has_rate) known.push_back(&run);
  }
  std::ranges::stable_sort(known, {}, [](const RunAccount* run) { return run->begin_unix_ns; });
  std::map<Work, std::vector<Rate>> rates;
  for (const RunAccount* run : known) {
    rates[{run->user, run->directory, run->command, run->device, run->devices}].push_back(
        {run->node, run->steps_per_s});
  }
  return rates;
}

NodeHistory HistoryOf(const std::string& node, const Seen& seen) {
  NodeHistory history;
  history.node = node;
  history.comparisons = seen.ratios.size();
  history.below = seen.below;
  history.above = seen.above;
  history.works = seen.works;
  history.median = diagnose::Median(seen.ratios);
  history.low = diagnose::Quantile(seen.ratios, 0.25);
  history.high = diagnose::Quantile(seen.ratios, 0.75);
  return history;
}

}  // namespace

double ByChance(size_t all, size_t below) {
  double sum = 0;
  for (size_t k = below; k <= all; ++k) {
    const double of = static_cast<double>(all), at = static_cast<double>(k);
    sum +=
        std::exp(std::lgamma(of + 1) - std::lgamma(at + 1) - std::lgamma(of - at + 1) - of * std::log(2.0));
  }
  return std::min(1.0, sum);
}

std::vector<NodeHistory> HistoriesOf(const std::vector<RunAccount>& runs) {
  std::map<std::string, Seen> seen;
  for (const auto& [work, rates] : RatesOf(runs)) {
    std::set<std::string> nodes;
    for (const Rate& rate : rates) nodes.insert(rate.node);
    if (nodes.size() < kFewestMachines) continue;
    for (const std::string& node : nodes) {
      Seen& of = seen[node];
      const size_t before = of.ratios.size();
      CompareIn(rates, node, of);
      if (of.ratios.size() > before) ++of.works;
    }
  }
  std::vector<NodeHistory> histories;
  for (const auto& [node, of] : seen) {
    if (of.ratios.size() >= kFewest) histories.push_back(HistoryOf(node, of));
  }
  for (NodeHistory& history : histories) {
    const double chance =
        ByChance(history.below + history.above, history.below) * static_cast<double>(histories.size());
    history.slow = history.median < kSlow && chance < kRarely;
  }
  std::ranges::stable_sort(histories, {}, &NodeHistory::median);
  return histories;
}

}  // namespace fullbore::fleet
