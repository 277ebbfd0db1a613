// Reads the runs of directories, diagnoses those that changed since they were last collected, and puts their accounts
// into a store.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "fleet/store.h"

namespace fullbore::fleet {

struct Collected {
  size_t runs = 0;                  // that were found
  size_t changed = 0;               // of them, put into the store
  std::vector<std::string> unread;  // why each of the others could not be
  bool all_again = false;           // the store does not let us read what was put before: all were read
};

struct CollectOptions {
  std::vector<std::string> directories;  // of runs, or of whatever holds some, at any depth
  size_t threads = 1;
  std::function<void(size_t done, size_t all)> progress;  // on the caller's thread
  int64_t (*wall_ns)() = WallNs;                          // tests have a time of their own
};

struct Found {
  std::vector<std::string> runs;    // sorted; a folder of machines is one
  std::vector<std::string> unread;  // directories, with the reason
};

// The runs below the directories. Symbolic links are not followed. An error where one does not exist.
Result<Found> FindRuns(const std::vector<std::string>& directories);

Result<Collected> Collect(const CollectOptions& options, Store& store);

}  // namespace fullbore::fleet
