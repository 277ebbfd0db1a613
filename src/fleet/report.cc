#include "fleet/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace fullbore::fleet {

namespace {

constexpr std::array kNames = {std::pair{By::kUser, "user"}, std::pair{By::kAccount, "account"},
                               std::pair{By::kPartition, "partition"}, std::pair{By::kDevice, "device"}};

const std::string& KeyOf(const RunAccount& run, By by) {
  switch (by) {
    case By::kUser:
      return run.user;
    case By::kAccount:
      return run.account;
    case By::kPartition:
      return run.partition;
    case By::kDevice:
      return run.device;
  }
  return run.user;
}

void Add(const RunAccount& run, Group& group) {
  ++group.runs;
  group.given_ns += run.given_ns;
  for (const Part& part : run.parts) {
    if (part.kind == Kind::kWork) group.work_ns += part.device_ns;
    if (part.kind == Kind::kWaste) group.waste_ns += part.device_ns;
    if (part.kind == Kind::kNotJudged) group.not_judged_ns += part.device_ns;
  }
}

class Fixes {
 public:
  void Add(const RunAccount& run) {
    if (run.advice.empty()) return;
    const Advice& advice = run.advice.front();
    const int64_t expected_ns = advice.SavesNs(advice.expected);
    if (expected_ns <= 0) return;
    Fix& fix = fixes_[{advice.finding, advice.cause, advice.change}];
    if (expected_ns > most_[&fix]) {
      most_[&fix] = expected_ns;
      fix.title = advice.title;
      fix.run = run.id;
    }
    fix.finding = advice.finding;
    fix.cause = advice.cause;
    fix.change = advice.change;
    ++fix.runs;
    fix.users.insert(run.user);
    fix.low_ns += advice.SavesNs(advice.low);
    fix.expected_ns += expected_ns;
    fix.high_ns += advice.SavesNs(advice.high);
  }

  std::vector<Fix> Take() {
    std::vector<Fix> all;
    for (auto& [key, fix] : fixes_) all.push_back(std::move(fix));
    std::ranges::stable_sort(all, std::greater(), &Fix::expected_ns);
    return all;
  }

 private:
  std::map<std::tuple<std::string, std::string, std::string>, Fix> fixes_;
  std::map<const Fix*, int64_t> most_;  // of one run
};

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

Report ReportOn(const std::vector<RunAccount>& runs, By by, const std::string& user) {
  Report report;
  report.by = by;
  std::map<std::string, Group> groups;
  Fixes fixes;
  for (const RunAccount& run : runs) {
    if (!user.empty() && run.user != user) continue;
    if (report.runs++ == 0) report.begin_unix_ns = run.begin_unix_ns;
    report.begin_unix_ns = std::min(report.begin_unix_ns, run.begin_unix_ns);
    report.end_unix_ns = std::max(report.end_unix_ns, run.begin_unix_ns);
    report.given_ns += run.given_ns;
    report.users.insert(run.user);
    for (const Part& part : run.parts) AddUp(report.parts, part);
    Add(run, groups[KeyOf(run, by)]);
    fixes.Add(run);
  }
  std::ranges::stable_sort(report.parts, [](const Part& a, const Part& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.device_ns > b.device_ns;
  });
  for (auto& [name, group] : groups) {
    group.name = name.empty() ? "unknown" : name;
    report.groups.push_back(std::move(group));
  }
  std::ranges::stable_sort(report.groups, std::greater(), &Group::given_ns);
  report.fixes = fixes.Take();
  return report;
}

}  // namespace fullbore::fleet
