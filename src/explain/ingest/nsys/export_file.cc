#include "explain/ingest/nsys/export_file.h"

#include <sqlite3.h>

namespace fullbore::ingest::nsys {
namespace {

// As a URI, so that "immutable" can be said: a file in a directory that cannot be written to opens too, and a
// journal that lies beside it is left alone.
std::string ReadOnlyUri(const std::string& path) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      uri += '%';
      uri += kHex[static_cast<unsigned char>(c) >> 4];
      uri += kHex[static_cast<unsigned char>(c) & 15];
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";
}

Error Corrupt(std::string text) { return {ErrorCode::kCorrupt, std::move(text), ""}; }

}  // namespace

void Rows::Finalizer::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

bool Rows::Next() {
  code_ = sqlite3_step(statement_.get());
  return code_ == SQLITE_ROW;
}

Result<void> Rows::status() const {
  if (code_ == SQLITE_ROW || code_ == SQLITE_DONE || code_ == SQLITE_OK) return {};
  return Corrupt(sqlite3_errmsg(sqlite3_db_handle(statement_.get())));
}

bool Rows::IsNull(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }

int64_t Rows::Int(int column) const { return sqlite3_column_int64(statement_.get(), column); }

std::string_view Rows::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return {};
  return {text, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

void ExportFile::Closer::operator()(sqlite3* db) const { sqlite3_close(db); }

Result<ExportFile> ExportFile::Open(const std::string& path) {
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(ReadOnlyUri(path).c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
  ExportFile file;
  file.db_.reset(raw);
  if (code != SQLITE_OK) return Corrupt("cannot open '" + path + "': " + sqlite3_errstr(code));
  if (auto read = file.ReadSchema(); !read) {
    return Corrupt("cannot read '" + path + "' as an sqlite file: " + read.error().text);
  }
  if (auto read = file.ReadStrings(); !read) {
    return Corrupt("cannot read the strings of '" + path + "': " + read.error().text);
  }
  return file;
}

Result<Rows> ExportFile::Prepare(const std::string& sql) {
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v2(db_.get(), sql.c_str(), static_cast<int>(sql.size()), &raw, nullptr);
  if (code != SQLITE_OK) return Corrupt(sqlite3_errmsg(db_.get()));
  Rows rows;
  rows.statement_.reset(raw);
  return rows;
}

Result<void> ExportFile::ReadSchema() {
  auto tables = Prepare(
      "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type IN ('table', "
      "'view')");
  if (!tables) return tables.error();
  while (tables->Next()) columns_[std::string(tables->Text(0))].insert(std::string(tables->Text(1)));
  return tables->status();
}

Result<void> ExportFile::ReadStrings() {
  if (!HasTable("StringIds")) return {};
  auto rows = Read("StringIds", {"id", "value"});
  if (!rows) return rows.error();
  while (rows->Next()) strings_.emplace(rows->Int(0), rows->Text(1));
  return rows->status();
}

Result<Rows> ExportFile::Read(const std::string& table, const std::vector<std::string>& columns,
                              const std::string& rest) {
  const auto& known = columns_.at(table);
  std::string sql = "SELECT ";
  for (size_t i = 0; i < columns.size(); ++i) {
    sql += (i == 0 ? "" : ", ") +
           (known.count(columns[i]) != 0 ? "\"" + columns[i] + "\"" : std::string("NULL"));
  }
  return Prepare(sql + " FROM \"" + table + "\" " + rest);
}

std::string_view ExportFile::StringOf(int64_t id) const {
  const auto found = strings_.find(id);
  return found == strings_.end() ? std::string_view{} : found->second;
}

}  // namespace fullbore::ingest::nsys
