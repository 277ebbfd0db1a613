// The part of SQLite that the run file needs, with errors as results. One connection, one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace fullbore::record {

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
  std::string Text(int column) const;  // also for blobs
  bool IsNull(int column) const;

 private:
  friend class Database;
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
  int bound_ = 0;
  Result<void> status_;
};

class Database {
 public:
  static Result<Database> OpenForWriting(const std::string& path);  // created if missing
  static Result<Database> OpenForReading(const std::string& path);  // as far as a damaged file allows

  Result<void> Execute(const std::string& sql);
  Result<Statement> Prepare(std::string_view sql);

 private:
  struct Closer {
    void operator()(sqlite3* db) const;
  };
  std::unique_ptr<sqlite3, Closer> db_;
};

}  // namespace fullbore::record
