// The accounts of many runs, in one SQLite file (docs/fleet.md documents its tables). Several collectors may write at
// once; each run is put in one transaction, so that one that is killed leaves whole runs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/account.h"
#include "record/database.h"

namespace fullbore::fleet {

// What tells that a run has not changed since it was collected.
struct Stamp {
  int64_t bytes = 0, changed_ns = 0;
  bool operator==(const Stamp&) const = default;
};

class Store {
 public:
  // Created if missing, readable by its user alone. An error where the file is something else, or of a later version.
  static Result<Store> Open(const std::string& path);
  // Of a file that is there; nothing in it changes.
  static Result<Store> OpenForReading(const std::string& path);

  Result<std::map<std::string, Stamp>> Stamps();  // by the path of the run
  Result<void> Put(const RunAccount& account, const Stamp& stamp);
  // All runs that began at this time or later, the oldest first.
  Result<std::vector<RunAccount>> Runs(int64_t since_unix_ns);

 private:
  explicit Store(record::Database database) : database_(std::move(database)) {}
  Result<void> PutRows(const RunAccount& account, const Stamp& stamp);

  record::Database database_;
};

}  // namespace fullbore::fleet
