// The part of SQLite that run files, and traces that are SQLite files, need, with errors as results. One
// connection, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace fullbore::record {

// What reading a file may still take before it is called damaged: see limits.h.
struct Allowance {
  int64_t steps = 0;
  int64_t bytes = 0;
};

// A prepared statement. Bind in order, then Run() or while (Next()); text and blobs are copied.
class Statement {
 public:
  Statement& Bind(int64_t value);
  Statement& Bind(double value);
  Statement& Bind(std::string_view text);
  Statement& BindBlob(std::string_view bytes);
  Statement& BindNull();

  Result<void> Run();  // executes and resets
  bool Next();         // false at the end or on an error: see status()
  Result<void> status() const { return status_; }

  int64_t Int(int column) const;
  double Double(int column) const;
  std::string Text(int column) const;           // also for blobs
  std::string_view TextView(int column) const;  // valid until Next()
  bool IsNull(int column) const;

 private:
  friend class Database;
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
  std::shared_ptr<Allowance> allowance_;  // null: without limits
  int bound_ = 0;
  Result<void> status_;
};

// An empty run file, for its user alone; false where there is one. SQLite gives the files beside it the same
// permissions. Those that lie there longer than the new file are of a run whose file was deleted, or were
// planted: SQLite would play them back into it, so they are removed.
Result<bool> MakeRunFile(const std::string& path);

class Database {
 public:
  static Result<Database> OpenForWriting(const std::string& path);  // created if missing

  // As far as a damaged file allows. The file may come from anybody: nothing beside it is touched (snapshot.h),
  // it is asked nothing but SELECT, of its own plain tables, and within limits (limits.h). An error about what
  // the file holds leaves its name to the caller.
  static Result<Database> OpenForReading(const std::string& path);

  Result<void> Execute(const std::string& sql);
  Result<Statement> Prepare(std::string_view sql);

  // Opened for reading: the columns of a plain table; null where there is none. Views, virtual tables and
  // tables with computed columns run code of whoever wrote the file: they count as not there.
  const std::set<std::string>* ColumnsOf(const std::string& table) const;
  int64_t file_bytes() const { return file_bytes_; }

 private:
  Result<void> PrepareForReading(int64_t file_bytes);
  Result<void> ReadSchema();

  struct Closer {
    void operator()(sqlite3* db) const;
  };
  std::shared_ptr<Allowance> allowance_;  // outlives db_, which looks at it
  int64_t file_bytes_ = 0;
  std::map<std::string, std::set<std::string>> columns_;
  std::unique_ptr<sqlite3, Closer> db_;
};

}  // namespace fullbore::record
