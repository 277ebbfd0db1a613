// Which alerts in the histories of run files were begun by a watcher of this user, on this machine: a run file may have
// come from anybody, with any history in it, and what such a history says is to be said to nobody. So each alert that a
// watcher begins is noted beside, in a private directory of its user's, until it is over and delivered.
//
// A note is an empty file, named by the run file's inode, the stage, the moment of firing and the rule. Any number of
// processes may write and look at once. Notes that nobody came back for are removed after a month.
#pragma once

#include <string>

#include "base/result.h"
#include "record/alert_log.h"

namespace fullbore::watch {

class OwnAlerts {
 public:
  // $XDG_STATE_HOME/fullbore/alerts, or ~/.local/state/fullbore/alerts; empty where neither is known.
  static std::string UsualDirectory();

  explicit OwnAlerts(std::string directory = UsualDirectory()) : directory_(std::move(directory)) {}

  Result<void> Note(const std::string& run_file, const record::AlertRow& row) const;
  bool Has(const std::string& run_file, const record::AlertRow& row) const;
  void Forget(const std::string& run_file, const record::AlertRow& row) const;

  // Whether something is still to be said about a run: that an alert is over, or what was not delivered.
  bool IsOwed(const std::string& run_file) const;

 private:
  std::string PathOf(const std::string& run_file, const record::AlertRow& row) const;  // empty: there is none
  void RemoveOld() const;

  std::string directory_;
};

}  // namespace fullbore::watch
