#include "fleet/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "fleet/words.h"

namespace fullbore::fleet {

namespace {

constexpr std::array kNames = {std::pair{By::kUser, "user"}, std::pair{By::kAccount, "account"},
                               std::pair{By::kPartition, "partition"}, std::pair{By::kDevice, "device"}};

const std::string& KeyOf(const Origin& origin, By by) {
  switch (by) {
    case By::kUser:
      return origin.user;
    case By::kAccount:
      return origin.account;
    case By::kPartition:
      return origin.partition;
    case By::kDevice:
      return origin.device;
  }
  return origin.user;
}

std::string GroupOf(const Origin& origin, By by) {
  const std::string& key = KeyOf(origin, by);
  return key.empty() ? "unknown" : key;
}

void Add(const PartTotal& part, Group& group) {
  if (part.kind <= Kind::kSlowKernels) group.work_ns += part.device_ns;
  if (part.kind == Kind::kWaste) group.waste_ns += part.device_ns;
  if (part.kind == Kind::kNotJudged) group.not_judged_ns += part.device_ns;
}

double CostOf(WideNs ns, const std::string& device, const Prices& prices) {
  const auto price = prices.of_hour ? prices.of_hour(device) : std::nullopt;
  return price ? Hours(ns) * *price : 0;
}

void AddCost(const RunsSum& sum, const Prices& prices, Report& report) {
  report.cost += CostOf(sum.given_ns, sum.of.device, prices);
  if (prices.of_hour && !prices.of_hour(sum.of.device)) report.unpriced.insert(sum.of.device);
}

void AddRuns(const RunsSum& sum, const std::vector<Exemption>& exemptions, const Prices& prices,
             Report& report) {
  report.begin_unix_ns =
      report.runs == 0 ? sum.first_unix_ns : std::min(report.begin_unix_ns, sum.first_unix_ns);
  report.end_unix_ns = std::max(report.end_unix_ns, sum.last_unix_ns);
  report.runs += sum.runs;
  report.given_ns += sum.given_ns;
  report.users.insert(sum.of.user);
  if (sum.of.exemption >= 0)
    AddUp(report.parts, {Kind::kExempt, exemptions[static_cast<size_t>(sum.of.exemption)].why, sum.given_ns,
                         CostOf(sum.given_ns, sum.of.device, prices)});
  AddCost(sum, prices, report);
}

// By edit, of all users.
std::vector<Fix> FixesOf(const std::vector<FixSum>& sums, const Prices& prices) {
  std::map<std::tuple<std::string, std::string, std::string>, std::pair<Fix, int64_t>> fixes;
  for (const FixSum& sum : sums) {
    auto& [fix, most_ns] = fixes[{sum.finding, sum.cause, sum.change}];
    if (sum.most_ns > most_ns) {
      most_ns = sum.most_ns;
      fix.title = sum.title;
      fix.run = sum.run;
    }
    fix.finding = sum.finding;
    fix.cause = sum.cause;
    fix.change = sum.change;
    fix.runs += sum.runs;
    fix.users.insert(sum.user);
    fix.low_ns += sum.low_ns;
    fix.expected_ns += sum.expected_ns;
    fix.high_ns += sum.high_ns;
    fix.expected_cost += CostOf(sum.expected_ns, sum.device, prices);
  }
  std::vector<Fix> all;
  for (auto& [key, fix] : fixes) all.push_back(std::move(fix.first));
  std::ranges::stable_sort(all, std::greater(), &Fix::expected_ns);
  return all;
}

std::vector<OverAskedJobs> AskedOf(const std::vector<AskedSum>& sums) {
  std::map<std::string, OverAskedJobs> by_what;
  for (const AskedSum& sum : sums) {
    OverAskedJobs& all = by_what[sum.what];
    all.what = sum.what;
    all.jobs += sum.jobs;
    all.runs += sum.runs;
    all.users.insert(sum.user);
    all.given += sum.given;
    all.used += sum.used;
  }
  std::vector<OverAskedJobs> asked;
  for (auto& [what, all] : by_what) {
    all.given /= static_cast<double>(all.jobs);
    all.used /= static_cast<double>(all.jobs);
    asked.push_back(std::move(all));
  }
  return asked;
}

bool IsWaste(const PartSum& sum) { return sum.part.kind == Kind::kWaste && sum.of.exemption < 0; }

// Of one cause: wasted before and now, by group.
using Wasted = std::map<std::string, std::pair<WideNs, WideNs>>;

Trend TrendOf(const std::string& cause, const Wasted& by_group) {
  Trend trend;
  trend.cause = cause;
  for (const auto& [group, ns] : by_group) {
    trend.before_ns += ns.first;
    trend.now_ns += ns.second;
  }
  const int sign = trend.now_ns >= trend.before_ns ? 1 : -1;
  WideNs most = -1;
  for (const auto& [group, ns] : by_group) {
    if (sign * (ns.second - ns.first) <= most) continue;
    most = sign * (ns.second - ns.first);
    trend.group = group;
    trend.group_before_ns = ns.first;
    trend.group_now_ns = ns.second;
  }
  return trend;
}

}  // namespace

const char* Name(By by) {
  return std::ranges::find(kNames, by, [](const auto& each) { return each.first; })->second;
}

Result<By> ByNamed(const std::string& name) {
  for (const auto& [by, known] : kNames) {
    if (name == known) return by;
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("--by '{}' is not user, account, partition or device", name), ""};
}

Report ReportOn(const Sums& sums, By by, const std::vector<Exemption>& exemptions, const Prices& prices) {
  Report report;
  report.by = by;
  report.has_prices = prices.of_hour != nullptr;
  report.currency = prices.currency;
  std::map<std::string, Group> groups;
  for (const RunsSum& sum : sums.runs) {
    AddRuns(sum, exemptions, prices, report);
    Group& group = groups[GroupOf(sum.of, by)];
    group.runs += sum.runs;
    group.given_ns += sum.given_ns;
  }
  for (const PartSum& sum : sums.parts) {
    if (sum.of.exemption >= 0) continue;
    PartTotal part = sum.part;
    part.cost = CostOf(part.device_ns, sum.of.device, prices);
    AddUp(report.parts, part);
    Add(sum.part, groups[GroupOf(sum.of, by)]);
  }
  std::ranges::stable_sort(report.parts, [](const PartTotal& a, const PartTotal& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.device_ns > b.device_ns;
  });
  for (auto& [name, group] : groups) {
    group.name = name;
    report.groups.push_back(std::move(group));
  }
  std::ranges::stable_sort(report.groups, std::greater(), &Group::given_ns);
  report.fixes = FixesOf(sums.fixes, prices);
  report.asked = AskedOf(sums.asked);
  return report;
}

Before TrendsOf(const Sums& before, const Sums& now, By by) {
  Before found;
  for (const RunsSum& sum : before.runs) {
    found.runs += sum.runs;
    found.given_ns += sum.given_ns;
  }
  std::map<std::string, Wasted> causes;
  for (const PartSum& sum : before.parts) {
    if (!IsWaste(sum)) continue;
    causes[sum.part.cause][GroupOf(sum.of, by)].first += sum.part.device_ns;
    found.waste_ns += sum.part.device_ns;
  }
  for (const PartSum& sum : now.parts) {
    if (IsWaste(sum)) causes[sum.part.cause][GroupOf(sum.of, by)].second += sum.part.device_ns;
  }
  for (const auto& [cause, by_group] : causes) found.trends.push_back(TrendOf(cause, by_group));
  std::ranges::stable_sort(found.trends, std::greater(), &Trend::change_ns);
  return found;
}

}  // namespace fullbore::fleet
