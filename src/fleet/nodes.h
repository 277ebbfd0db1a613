// Machines that do the same work more slowly than others do, which no single run can show.
//
// The same work is the same command of the same user in the same directory, on the same kind and number of devices. Each
// run's rate is held against the median of that work on the other machines, where these are two at least with five runs
// together: else one lucky run would make all others slow. A machine is slow where so many of its runs are below it that chance would do that in
// fewer than one of a hundred machines (a sign test, by the number of machines that were looked at), and by 5 % in the
// median.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fleet/account.h"

namespace fullbore::fleet {

struct NodeHistory {
  std::string node;
  size_t runs = 0;           // that could be held against the same work elsewhere
  size_t below = 0;          // of them, slower than it
  size_t works = 0;          // different commands
  double median = 1;         // of the rates, as a ratio of the same work's elsewhere
  double low = 1, high = 1;  // the middle half of them
  bool slow = false;
};

// The slowest first; machines with fewer than five such runs are left out.
std::vector<NodeHistory> HistoriesOf(const std::vector<RunAccount>& runs);

// How likely it is that at least `below` of `runs` fall below the median, where each does by chance.
double ByChance(size_t runs, size_t below);

}  // namespace fullbore::fleet
