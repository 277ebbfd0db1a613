// What many runs sum to, by what a report may group them by: small, however many runs there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fleet/account.h"

namespace fullbore::fleet {

// Whose runs, and where they ran; empty where the runs do not say.
struct Origin {
  std::string user, account, partition, device;
  int64_t exemption = -1;  // the first that applies, by its place
  auto operator<=>(const Origin&) const = default;
};

struct RunsSum {
  Origin of;
  size_t runs = 0;
  WideNs given_ns = 0;
  int64_t first_unix_ns = 0, last_unix_ns = 0;  // when the first and the last of them began
};

struct PartSum {
  Origin of;
  PartTotal part;
};

// Of the runs for which this edit is recommended first, by user and device.
struct FixSum {
  std::string user, device, finding, cause, change;
  size_t runs = 0;
  WideNs low_ns = 0, expected_ns = 0, high_ns = 0;  // device time that it brings back
  int64_t most_ns = 0;                              // of them, of one run: this one
  std::string run, title;
};

// What jobs of a user asked for and hardly used (use.h), over all of them.
struct AskedSum {
  std::string user, what;
  size_t jobs = 0, runs = 0;
  double given = 0, used = 0;  // cores, bytes, ns, GPUs: of each job
};

struct Sums {
  std::vector<RunsSum> runs;
  std::vector<PartSum> parts;
  std::vector<FixSum> fixes;    // not of exempt runs
  std::vector<AskedSum> asked;  // neither
};

// Runs of which nobody shall be told that they waste: an interactive session, a device that is held on purpose. A rule
// applies to runs that agree with all that it names.
struct Exemption {
  std::string user{}, account{}, partition{}, device{};
  std::string command{};  // is part of the command, without regard to case
  std::string why{};
};

}  // namespace fullbore::fleet
