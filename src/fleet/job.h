// One job whole, over its restarts, machines and ranks: a waterfall from the device time that was paid down to useful
// work. Pure: of the accounts of its runs. It adds up exactly, and each bar names the runs that it comes from.
//
// Paid is what its runs were given, and the time between them in one allocation, which holds the devices: an allocation is
// what the scheduler gave between two restarts of the job. Where the scheduler's accounting says when each began and
// ended, all of it is paid: also what came after the last run, and devices that no run used. While a job waits to be
// restarted nothing is paid; that time is told, and is in no bar.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fleet/account.h"
#include "fleet/allocation.h"

namespace fullbore::fleet {

struct Bar {
  struct Of {
    size_t run =
        0;  // its place in Job::runs; of time between two, the one before, or the first of its allocation
    int64_t device_ns = 0;
  };
  Kind kind = Kind::kWork;
  std::string cause;  // of waste the finding's id; of kBetween one of those below, or empty
  int64_t device_ns = 0;
  std::vector<Of> of;
};
// Of each allocation. Without a run: an allocation of which none was recorded, and devices beside those of its runs.
inline constexpr char kBeforeTheFirst[] = "before the first", kAfterTheLast[] = "after the last",
                      kWithoutARun[] = "without a run";

// A stretch in which none of the job's runs was recorded.
struct Gap {
  int64_t begin_unix_ns = 0, end_unix_ns = 0;
  size_t before = 0;  // the run that it leads to, by its place; as many as there are after the last one
  bool paid = false;  // within an allocation
};

struct Job {
  std::string id, name, user, account, partition, device;  // empty where unknown
  std::vector<RunAccount> runs;                            // by their begin
  std::vector<Allocation> allocations;  // as the accounting has them; empty where not known
  std::vector<Gap> gaps;
  int64_t begin_unix_ns = 0, end_unix_ns = 0;
  int64_t paid_ns = 0, useful_ns = 0;
  std::vector<Bar> bars;  // as the waterfall falls, useful work last; they sum to what was paid
  int64_t restarts = 0;
  Use use;  // of the run that lasted longest, with what runs side by side used together

  bool goes_on() const { return !runs.empty() && !runs.back().ended && !runs.back().cut_off; }
};

// `runs`: of one job, at least one; those that are there twice count once. `allocations`: what the accounting knows of it;
// what it does not know follows from the runs.
Job JobOf(std::vector<RunAccount> runs, std::vector<Allocation> allocations = {});

// "waiting (input-bound)", "before its first run", "useful work".
std::string NameForPeople(const Bar& bar);
// What the bars do not say, each a sentence: what was not paid, what is not known, what goes on.
std::vector<std::string> NotesOn(const Job& job);
// "exit 1", "ended", "cut off", "goes on".
std::string HowItEnded(const RunAccount& run);

}  // namespace fullbore::fleet
