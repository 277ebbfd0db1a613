// Machines that do the same work more slowly than others do, which no single run can show.
//
// The same work is the same command of the same user in the same directory, on the same kind and number of devices. The
// code behind a command changes meanwhile, so runs are held only against those next to them in time: the runs of a machine
// between one on another machine and the next one elsewhere are one comparison, of their median with both. No run is in
// two comparisons of a machine, so that they are independent: a change of the code makes one of them slow or fast, and
// either as likely. The work must be on three machines, since of two either may be the odd one.
//
// A machine is slow where it is below both so often that chance would do that in fewer than one of a hundred machines (a
// sign test of below both and above both, by the number of machines that were looked at), and by 5 % in the median.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fleet/account.h"

namespace fullbore::fleet {

struct NodeHistory {
  std::string node;
  size_t comparisons = 0;    // with the same work elsewhere
  size_t below = 0;          // of them, slower than both
  size_t above = 0;          // faster than both
  size_t works = 0;          // different commands
  double median = 1;         // of the rates, as a ratio of the mean of both
  double low = 1, high = 1;  // the middle half of them
  bool slow = false;
};

// The slowest first; machines with fewer than five comparisons are left out.
std::vector<NodeHistory> HistoriesOf(const std::vector<RunAccount>& runs);

// How likely it is that at least `below` of `all` are below, where each is by chance.
double ByChance(size_t all, size_t below);

}  // namespace fullbore::fleet
