// An Nsight Systems export as tables that may be missing, with columns that may be missing. Never written to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "record/database.h"

namespace fullbore::ingest::nsys {

using Rows = record::Statement;

class ExportFile {
 public:
  static Result<ExportFile> Open(const std::string& path);

  bool HasTable(const std::string& table) const { return database_.ColumnsOf(table) != nullptr; }

  bool IsExport() {
    return HasTableLike("CUPTI_%") || HasTableLike("StringIds") || HasTableLike("META_DATA_%");
  }
  bool IsRocprofDatabase() { return HasTableLike("rocpd_%"); }

  // The named columns of a table that exists, in that order; those that it lacks read as NULL.
  Result<Rows> Read(const std::string& table, const std::vector<std::string>& columns,
                    const std::string& rest = "");

  std::string_view StringOf(int64_t id) const;  // StringIds; empty where unknown

 private:
  explicit ExportFile(record::Database database) : database_(std::move(database)) {}
  Result<void> ReadStrings();
  bool HasTableLike(const char* pattern);  // of SQL's LIKE; a view counts, too

  record::Database database_;
  std::unordered_map<int64_t, std::string> strings_;
};

}  // namespace fullbore::ingest::nsys
