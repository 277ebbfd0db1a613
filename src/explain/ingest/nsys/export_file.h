// An Nsight Systems export as tables that may be missing, with columns that may be missing. Never written to.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace fullbore::ingest::nsys {

class Rows {
 public:
  bool Next();  // false at the end or where the file is damaged: see status()
  Result<void> status() const;

  bool IsNull(int column) const;
  int64_t Int(int column) const;            // 0 for NULL
  std::string_view Text(int column) const;  // valid until Next()

 private:
  friend class ExportFile;
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
  int code_ = 0;
};

class ExportFile {
 public:
  static Result<ExportFile> Open(const std::string& path);

  bool HasTable(const std::string& table) const { return columns_.count(table) != 0; }

  // The named columns of a table that exists, in that order; those that it lacks read as NULL.
  Result<Rows> Read(const std::string& table, const std::vector<std::string>& columns,
                    const std::string& rest = "");

  std::string_view StringOf(int64_t id) const;  // StringIds; empty where unknown

 private:
  struct Closer {
    void operator()(sqlite3* db) const;
  };

  Result<Rows> Prepare(const std::string& sql);
  Result<void> ReadSchema();
  Result<void> ReadStrings();

  std::unique_ptr<sqlite3, Closer> db_;
  std::map<std::string, std::set<std::string>> columns_;
  std::unordered_map<int64_t, std::string> strings_;
};

}  // namespace fullbore::ingest::nsys
