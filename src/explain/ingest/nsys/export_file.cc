#include "explain/ingest/nsys/export_file.h"

namespace fullbore::ingest::nsys {

Result<ExportFile> ExportFile::Open(const std::string& path) {
  auto database = record::Database::OpenForReading(path);
  if (!database) {
    const Error& error = database.error();
    return Error{error.code, "cannot read '" + path + "' as an Nsight Systems export: " + error.text,
                 error.hint};
  }
  ExportFile file(std::move(*database));
  if (auto read = file.ReadStrings(); !read) {
    return Error{read.error().code, "cannot read the strings of '" + path + "': " + read.error().text, ""};
  }
  return file;
}

Result<void> ExportFile::ReadStrings() {
  if (!HasTable("StringIds")) return {};
  auto rows = Read("StringIds", {"id", "value"});
  if (!rows) return rows.error();
  while (rows->Next()) strings_.emplace(rows->Int(0), rows->TextView(1));
  return rows->status();
}

bool ExportFile::HasTableLike(const char* pattern) {
  auto rows =
      database_.Prepare("SELECT 1 FROM sqlite_master WHERE name LIKE '" + std::string(pattern) + "' LIMIT 1");
  return rows && rows->Next();
}

Result<Rows> ExportFile::Read(const std::string& table, const std::vector<std::string>& columns,
                              const std::string& rest) {
  const auto& known = *database_.ColumnsOf(table);
  std::string sql = "SELECT ";
  for (size_t i = 0; i < columns.size(); ++i) {
    sql += (i == 0 ? "" : ", ") +
           (known.count(columns[i]) != 0 ? "\"" + columns[i] + "\"" : std::string("NULL"));
  }
  return database_.Prepare(sql + " FROM \"" + table + "\" " + rest);
}

std::string_view ExportFile::StringOf(int64_t id) const {
  const auto found = strings_.find(id);
  return found == strings_.end() ? std::string_view{} : found->second;
}

}  // namespace fullbore::ingest::nsys
