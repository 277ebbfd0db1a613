// The accounts of many runs in a database: a file, or a PostgreSQL server (docs/fleet.md documents its tables). Several
// collectors may write at once; each run is put in one transaction, so that one that is killed leaves whole runs.
//
// Rows are only added. A run that went on is there again, and its newest row counts; older ones are deleted where the
// collector may delete. So a role that may only insert can collect, and cannot change what is there.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/account.h"
#include "fleet/sql/sql.h"
#include "fleet/sums.h"

namespace fullbore::fleet {

// What tells that a run has not changed since it was collected.
struct Stamp {
  int64_t bytes = 0, changed_ns = 0;
  auto operator<=>(const Stamp&) const = default;  // NOLINT(modernize-use-nullptr): a false alarm
};

// The runs that began within [since, until), of one user or (empty) of all.
struct Range {
  int64_t since_unix_ns = 0, until_unix_ns = std::numeric_limits<int64_t>::max();
  std::string user{};
};

class Store {
 public:
  // Made if missing: a file readable by its user alone, or the schema `fullbore` of a server. An error where it is
  // something else, or of a later version; an earlier one is brought up to date.
  static Result<Store> Open(const std::string& target);
  // Of what is there; nothing in it changes.
  static Result<Store> OpenForReading(const std::string& target);

  // What was put, by the path of the run. Nothing (kPermission) for a role that may not read it.
  Result<std::set<std::pair<std::string, Stamp>>> Seen();
  Result<void> Put(const RunAccount& account, const Stamp& stamp);

  Result<Sums> SumsOf(const Range& range, const std::vector<Exemption>& exemptions = {});
  // Of the runs of a job, or of one run: where their files are.
  Result<std::vector<std::string>> PathsOf(const std::string& id);
  // Without their parts and advice, the oldest first.
  Result<std::vector<RunAccount>> Runs(const Range& range);

 private:
  explicit Store(std::unique_ptr<sql::Connection> connection) : connection_(std::move(connection)) {}
  Result<void> Prepare();
  Result<void> PutRows(const RunAccount& account, const Stamp& stamp);
  Result<void> PutAsked(int64_t key, const RunAccount& account);
  Result<void> DropOlder(const RunAccount& account, const Stamp& stamp);

  std::unique_ptr<sql::Connection> connection_;
  bool may_delete_ = false;
};

}  // namespace fullbore::fleet
