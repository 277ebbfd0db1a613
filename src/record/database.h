// The part of SQLite that run files, and traces in SQLite format, need, with errors as
// results. One connection, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace fullbore::record {

// How much more reading a file may take before it counts as damaged: see limits.h.
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
  std::shared_ptr<Allowance> allowance_;  // null: no limits
  bool writes_ = false;
  int bound_ = 0;
  Result<void> status_;
};

// Creates an empty run file that only its user can read; false if it already exists. SQLite gives the files
// beside it the same permissions. Any that are older than the new file belong to a deleted run or were
// planted; SQLite would play them back into it, so they are removed.
Result<bool> MakeRunFile(const std::string& path);

class Database {
 public:
  static Result<Database> OpenForWriting(const std::string& path);  // created if missing

  // As far as a damaged file allows. The file may come from anybody: nothing beside it is touched
  // (snapshot.h), only SELECT is run on it, only on its plain tables, and within limits (limits.h). An error
  // about the contents of the file does not name it; that is left to the caller.
  static Result<Database> OpenForReading(const std::string& path);

  Result<void> Execute(const std::string& sql);
  Result<Statement> Prepare(std::string_view sql);

  // For a database opened for reading: the columns of a plain table, or null if there is none.
  // Views, virtual tables and tables with computed columns would run code of whoever wrote the
  // file, so they count as missing.
  const std::set<std::string>* ColumnsOf(const std::string& table) const;
  int64_t file_bytes() const { return file_bytes_; }
  int64_t changed_rows() const;  // by the last statement that changed any

  // For a database opened for writing: the index of its log could not be written (index_guard.h). Execute() says so
  // after what it did, which is then perhaps not in the file; to be opened again, after it was closed.
  bool lost_index() const;
  bool is_open() const { return db_ != nullptr; }
  void Close();
  ~Database() { Close(); }
  Database() = default;
  Database(Database&&) = default;
  Database& operator=(Database&&) = default;

 private:
  Result<void> PrepareForReading(int64_t file_bytes);
  Result<void> ReadSchema();

  struct Closer {
    void operator()(sqlite3* db) const;
  };
  std::shared_ptr<Allowance> allowance_;  // outlives db_, which reads it
  int64_t file_bytes_ = 0;
  std::optional<uint64_t> lost_before_;  // indexes of this process, when this one was opened for writing
  std::map<std::string, std::set<std::string>> columns_;
  std::unique_ptr<sqlite3, Closer> db_;
};

}  // namespace fullbore::record
