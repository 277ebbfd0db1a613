// The history of a run's alerts, in its run file. It is also the state of those who watch: what fires is an open row, so
// that an alert is fired once whoever watches, and by how many, and however often they are restarted.
//
// Written beside the recorder, in transactions of milliseconds; the file is opened for each and closed again. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace fullbore::record {

struct AlertRow {
  int64_t id = 0;  // of the row; 0 before it is written
  int64_t stage = 0;
  std::string rule;  // its name
  int64_t since_ns = 0, fired_ns = 0;
  std::optional<int64_t> resolved_ns;  // absent: it fires
  std::string what;                    // one sentence, of when it fired
  std::string details;                 // JSON: docs/run-file.md
  std::set<std::string> undelivered;   // what still has to be said to whom; secrets masked
};

class AlertLog {
 public:
  // A run file that exists, and belongs to this user: somebody else's is not written to.
  static Result<AlertLog> Of(const std::string& path);

  // Writes a new row and returns its id; nothing if the rule fires on that stage already.
  Result<std::optional<int64_t>> Fire(const AlertRow& row) const;
  // True if the row was open; what is undelivered comes to what its beginning has left.
  Result<bool> Resolve(const AlertRow& row) const;
  // These were delivered, or given up.
  Result<void> Settle(int64_t id, const std::set<std::string>& delivered) const;

 private:
  explicit AlertLog(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// By the time at which they fired, oldest first. A run file of anybody, also one without the table.
Result<std::vector<AlertRow>> ReadAlerts(const std::string& path);

}  // namespace fullbore::record
