#include "fleet/nodes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "explain/diagnose/statistics.h"

namespace fullbore::fleet {

namespace {

constexpr size_t kFewestRuns = 5, kFewestMachines = 3;
constexpr double kSlow = 0.95, kRarely = 0.01;

using Work = std::tuple<std::string, std::string, std::string, std::string, int64_t>;

struct Seen {
  std::vector<double> ratios;
  std::set<Work> works;
};

}  // namespace

double ByChance(size_t runs, size_t below) {
  double sum = 0;
  for (size_t k = below; k <= runs; ++k) {
    const double of = static_cast<double>(runs), at = static_cast<double>(k);
    sum +=
        std::exp(std::lgamma(of + 1) - std::lgamma(at + 1) - std::lgamma(of - at + 1) - of * std::log(2.0));
  }
  return std::min(1.0, sum);
}

std::vector<NodeHistory> HistoriesOf(const std::vector<RunAccount>& runs) {
  std::map<Work, std::map<std::string, std::vector<double>>> rates;  // by work and node
  for (const RunAccount& run : runs) {
    if (run.node.empty() || run.command.empty() || !(run.steps_per_s > 0)) continue;
    rates[{run.user, run.directory, run.command, run.device, run.devices}][run.node].push_back(
        run.steps_per_s);
  }
  std::map<std::string, Seen> seen;
  for (const auto& [work, of_nodes] : rates) {
    for (const auto& [node, own] : of_nodes) {
      std::vector<double> elsewhere;
      for (const auto& [other, theirs] : of_nodes) {
        if (other != node) elsewhere.insert(elsewhere.end(), theirs.begin(), theirs.end());
      }
      if (of_nodes.size() < kFewestMachines || elsewhere.size() < kFewestRuns) continue;
      const double usual = diagnose::Median(elsewhere);
      for (const double rate : own) seen[node].ratios.push_back(rate / usual);
      seen[node].works.insert(work);
    }
  }
  std::vector<NodeHistory> histories;
  for (const auto& [node, what] : seen) {
    if (what.ratios.size() < kFewestRuns) continue;
    NodeHistory& history = histories.emplace_back();
    history.node = node;
    history.runs = what.ratios.size();
    history.below =
        static_cast<size_t>(std::ranges::count_if(what.ratios, [](double ratio) { return ratio < 1; }));
    history.works = what.works.size();
    history.median = diagnose::Median(what.ratios);
    history.low = diagnose::Quantile(what.ratios, 0.25);
    history.high = diagnose::Quantile(what.ratios, 0.75);
  }
  for (NodeHistory& history : histories) {
    const double chance = ByChance(history.runs, history.below) * static_cast<double>(histories.size());
    history.slow = history.median < kSlow && chance < kRarely;
  }
  std::ranges::stable_sort(histories, {}, &NodeHistory::median);
  return histories;
}

}  // namespace fullbore::fleet
