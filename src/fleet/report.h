// What the accounts of many runs say together: where the device time went, by whom, and which edits bring most back.
// Sums are exact: the parts of a report, and those of each group, sum to what was given.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/account.h"
#include "fleet/sums.h"

namespace fullbore::fleet {

enum class By : uint8_t { kUser, kAccount, kPartition, kDevice };
const char* Name(By by);  // "user"
Result<By> ByNamed(const std::string& name);

// How much of it people are shown; JSON has all.
inline constexpr size_t kMostFixes = 10, kMostFixesOfALetter = 3, kMostGroups = 20;

// What an hour of a device costs; nothing where nobody says.
struct Prices {
  std::function<std::optional<double>(const std::string& device)> of_hour;
  std::string currency;  // empty where it is not known
};

// Whom a report is for.
struct ReportFor {
  std::string user;  // of a letter: whose runs alone the report has; else empty
};

struct Group {
  std::string name;  // "unknown" where the runs do not say
  size_t runs = 0;
  WideNs given_ns = 0, waste_ns = 0, not_judged_ns = 0;
  WideNs work_ns = 0;  // with padding, recomputation, slow kernels
};

// One recommended edit, over all runs that it is recommended for first: what others would bring of the same run is not
// added to it.
struct Fix {
  std::string finding, cause, change, title;  // the title is that of the run that it brings most
  std::string run;                            // that run
  size_t runs = 0;
  std::set<std::string> users;
  WideNs low_ns = 0, expected_ns = 0, high_ns = 0;  // device time that it brings back
  double expected_cost = 0;                         // where the report has prices
};

// What jobs asked for and hardly used, each on average: "cores", "memory" (bytes), "time" (ns); and "GPUs" that no kernel
// ran on.
struct OverAskedJobs {
  std::string what;
  size_t jobs = 0, runs = 0;
  std::set<std::string> users;
  double given = 0, used = 0;
};

// How much of one cause was wasted in this time and in the time before, and the group in which that changed most.
struct Trend {
  std::string cause;
  WideNs before_ns = 0, now_ns = 0;
  std::string group;
  WideNs group_before_ns = 0, group_now_ns = 0;

  WideNs change_ns() const { return now_ns > before_ns ? now_ns - before_ns : before_ns - now_ns; }
};

struct Before {
  size_t runs = 0;
  WideNs given_ns = 0, waste_ns = 0;
  std::vector<Trend> trends;  // what changed most first
};

struct Report {
  size_t runs = 0;
  std::set<std::string> users;
  int64_t begin_unix_ns = 0, end_unix_ns = 0;  // of the first run, and of the last one's begin
  WideNs given_ns = 0;
  std::vector<PartTotal> parts;  // by kind, and waste by cause, largest first
  By by = By::kUser;
  std::vector<Group> groups;  // largest first
  std::vector<Fix> fixes;     // what brings most first
  std::vector<OverAskedJobs> asked;
  bool has_prices = false;
  std::string currency;
  double cost = 0;                 // of those of its devices that have a price
  std::set<std::string> unpriced;  // the others
  std::optional<Before> before;    // the same time before, where it was asked for and had runs
};

// All time of exempt runs is one part, with why.
Report ReportOn(const Sums& sums, By by, const std::vector<Exemption>& exemptions = {},
                const Prices& prices = {});

Before TrendsOf(const Sums& before, const Sums& now, By by);

}  // namespace fullbore::fleet
