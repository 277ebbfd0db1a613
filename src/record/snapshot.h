// An SQLite file as it is at one moment, for reading without changing anything beside it.
//
// SQLite trusts the files beside a database: a journal `x-journal` is played back into it, and the file that
// the journal names as its super-journal is deleted; `x-wal` is opened for writing; `x-shm` is created,
// truncated and mapped into memory unchecked. All of this happens even if the database is opened with
// mode=ro, and whoever sends a run or a trace can send those files along. So SQLite sees none of them:
//   - without a write-ahead log the database is opened in place, but as `immutable`: nothing beside it is
//     looked at, nothing is locked;
//   - with one, whose pages belong to the database (a live run, or one whose recorder was killed), database
//     and log are copied into a directory of our own, and the copy is opened.
// The copy is consistent without a lock, so that a reader never makes a recorder wait either: the database is
// copied before its log, and both are copied again unless the log is still the same one afterwards. Database
// pages that a checkpoint wrote in the meantime are all in that log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/temporary_directory.h"

namespace fullbore::record {

class Snapshot {
 public:
  // Fails if the file is not a regular file that begins as SQLite files do.
  static Result<Snapshot> Take(const std::string& path);

  const std::string& path() const { return path_; }   // what SQLite may open
  bool is_copy() const { return copy_.has_value(); }  // else only as `immutable`
  int64_t bytes() const { return bytes_; }            // that it really holds: holes do not count

 private:
  Snapshot() = default;
  std::string path_;
  int64_t bytes_ = 0;
  std::optional<TemporaryDirectory> copy_;
};

// Distinguishes one state of a database file from a later one: a file opened as `immutable` must not change
// while it is read, and a recorder that adds a stage, or merges its log into the file, changes it.
struct FileState {
  uint64_t device = 0, inode = 0;
  int64_t bytes = -1, changed_ns = 0;
  bool has_log = false;

  static FileState Of(const std::string& path);
  bool operator==(const FileState&) const = default;
};

}  // namespace fullbore::record
