#include "record/database.h"

#include <sqlite3.h>

#include <cerrno>
#include <filesystem>

#include "base/fd.h"

namespace fullbore::record {

namespace {

constexpr int kBusyTimeoutMs = 5000;

Error ErrorOf(sqlite3* db, int code, const std::string& what) {
  ErrorCode kind = ErrorCode::kIo;
  switch (code & 0xff) {
    case SQLITE_FULL:
      kind = ErrorCode::kNoSpace;
      break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      kind = ErrorCode::kCorrupt;
      break;
    case SQLITE_CANTOPEN:
      kind = ErrorCode::kNotFound;
      break;
    case SQLITE_READONLY:
    case SQLITE_PERM:
      kind = ErrorCode::kPermission;
      break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      kind = ErrorCode::kUnavailable;
      break;
    default:
      break;
  }
  return {kind, what + ": " + (db ? sqlite3_errmsg(db) : sqlite3_errstr(code)), ""};
}

std::string Uri(const std::string& path, const char* query) {
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      constexpr char kHex[] = "0123456789abcdef";
      uri += '%';
      uri += kHex[static_cast<unsigned char>(c) >> 4];
      uri += kHex[static_cast<unsigned char>(c) & 15];
    } else {
      uri += c;
    }
  }
  return uri + query;
}

}  // namespace

void Statement::Finalizer::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
void Database::Closer::operator()(sqlite3* db) const { sqlite3_close_v2(db); }

Statement& Statement::Bind(int64_t value) {
  sqlite3_bind_int64(statement_.get(), ++bound_, value);
  return *this;
}

Statement& Statement::Bind(double value) {
  sqlite3_bind_double(statement_.get(), ++bound_, value);
  return *this;
}

Statement& Statement::Bind(std::string_view text) {
  sqlite3_bind_text64(statement_.get(), ++bound_, text.data() ? text.data() : "", text.size(),
                      SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}

Statement& Statement::BindBlob(std::string_view bytes) {
  sqlite3_bind_blob64(statement_.get(), ++bound_, bytes.data() ? bytes.data() : "", bytes.size(),
                      SQLITE_TRANSIENT);
  return *this;
}

Statement& Statement::BindNull() {
  sqlite3_bind_null(statement_.get(), ++bound_);
  return *this;
}

Result<void> Statement::Run() {
  while (Next()) {
  }
  return status_;
}

bool Statement::Next() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  status_ = Result<void>();
  if (code != SQLITE_DONE)
    status_ = ErrorOf(sqlite3_db_handle(statement_.get()), code, "cannot use the run file");
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
  bound_ = 0;
  return false;
}

int64_t Statement::Int(int column) const { return sqlite3_column_int64(statement_.get(), column); }
double Statement::Double(int column) const { return sqlite3_column_double(statement_.get(), column); }
bool Statement::IsNull(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::string Statement::Text(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return data ? std::string(data, static_cast<size_t>(size)) : std::string();
}

Result<Database> Database::OpenForWriting(const std::string& path) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database;
  database.db_.reset(raw);
  if (code != SQLITE_OK) return ErrorOf(raw, code, "cannot write '" + path + "'");
  sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  // A small page cache: the recorder lives on a few megabytes beside the training.
  const auto prepared =
      database.Execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-512;");
  if (!prepared) {
    Error error = prepared.error();
    error.text = "cannot write '" + path + "': " + error.text;
    return error;
  }
  return database;
}

// Where the directory cannot be written (a read-only mount), SQLite cannot make the index of a write-ahead
// log and refuses; `immutable` reads the main file alone then. writable_schema makes SQLite accept a file
// that is shorter than its header says: what is missing fails when it is read, not at once.
Result<Database> Database::OpenForReading(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return ErrnoError("cannot open '" + path + "'", ENOENT);
  Result<void> last;
  for (const char* query : {"?mode=rw", "?mode=ro", "?immutable=1"}) {
    sqlite3* raw = nullptr;
    const bool writable = std::string_view(query) == "?mode=rw";
    const int flags =
        (writable ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
    const int code = sqlite3_open_v2(Uri(path, query).c_str(), &raw, flags, nullptr);
    Database database;
    database.db_.reset(raw);
    if (code == SQLITE_OK) {
      sqlite3_busy_timeout(raw, kBusyTimeoutMs);
      (void)database.Execute("PRAGMA writable_schema=ON; PRAGMA cache_size=-2048;");
      if ((last = database.Execute("SELECT count(*) FROM sqlite_master")).ok()) return database;
    } else {
      last = ErrorOf(raw, code, "cannot open '" + path + "'");
    }
  }
  Error error = last.error();
  error.text = "'" + path + "' is not a readable run file: " + error.text;
  return error;
}

Result<void> Database::Execute(const std::string& sql) {
  const int code = sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return ErrorOf(db_.get(), code, "cannot use the run file");
  return {};
}

Result<Statement> Database::Prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v2(db_.get(), sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
  if (code != SQLITE_OK) return ErrorOf(db_.get(), code, "cannot use the run file");
  Statement statement;
  statement.statement_.reset(raw);
  return statement;
}

}  // namespace fullbore::record
