#include "record/database.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/guarded_file.h"
#include "base/trusted_path.h"
#include "record/index_guard.h"
#include "record/limits.h"
#include "record/snapshot.h"

namespace fullbore::record {

namespace {

constexpr int kBusyTimeoutMs = 5000;
constexpr int kStepsBetweenLooks = 10'000;
constexpr char kCannotUse[] = "the SQLite file cannot be used";

Error TooMuch() { return {ErrorCode::kCorrupt, "the file claims to hold more than fits in its size", ""}; }

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
    case SQLITE_PROTOCOL:  // a race for the locks of the write-ahead log, lost several times
      kind = ErrorCode::kUnavailable;
      break;
    default:
      break;
  }
  if ((code & 0xff) == SQLITE_INTERRUPT) return TooMuch();
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

// SQL that came with the file (triggers, views, index expressions) is never run.
void DistrustSchema(sqlite3* db) {
  for (const int setting :
       {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_TRUSTED_SCHEMA}) {
    sqlite3_db_config(db, setting, 0, nullptr);
  }
  sqlite3_drop_modules(db, nullptr);  // no virtual tables
}

// What our own statements need, and nothing more.
void LimitStatements(sqlite3* db) {
  constexpr std::pair<int, int> kLimits[] = {{SQLITE_LIMIT_LENGTH, kMaxValueBytes},
                                             {SQLITE_LIMIT_SQL_LENGTH, 100'000},
                                             {SQLITE_LIMIT_EXPR_DEPTH, 50},
                                             {SQLITE_LIMIT_COMPOUND_SELECT, 3},
                                             {SQLITE_LIMIT_VDBE_OP, 25'000},
                                             {SQLITE_LIMIT_FUNCTION_ARG, 8},
                                             {SQLITE_LIMIT_ATTACHED, 0},
                                             {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50},
                                             {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
                                             {SQLITE_LIMIT_WORKER_THREADS, 0}};
  for (const auto& [limit, value] : kLimits) sqlite3_limit(db, limit, value);
}

int OnlySelect(void*, int action, const char*, const char*, const char*, const char*) {
  const bool reads = action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_FUNCTION;
  return reads ? SQLITE_OK : SQLITE_DENY;
}

int TakeSteps(void* allowance) {
  auto* const left = static_cast<Allowance*>(allowance);
  left->steps -= kStepsBetweenLooks;
  return left->steps < 0 ? 1 : 0;
}

// A recorder that died while changing the journal mode leaves a journal, which SQLite plays back. Such a
// journal names another file to delete afterwards (a super-journal) only if several databases were
// changed at once, which no recorder does. The name stands at the journal's end: its length and
// checksum, then the magic bytes.
bool NamesAnotherFile(int journal, off_t size) {
  constexpr std::string_view kMark{"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8};
  std::string end(kMark.size(), '\0');
  const auto wanted = static_cast<ssize_t>(end.size());
  return size >= wanted && pread(journal, end.data(), end.size(), size - wanted) == wanted && end == kMark;
}

// SQLite writes to the log, to its index and to the database from its journal, whatever lies there. Beside a
// run that somebody sent, that may be another name of one of the reader's files, or a FIFO that never answers.
Result<void> CheckFilesBeside(const std::string& path) {
  const auto refuse = [](const std::string& beside, const char* what) {
    return Error{ErrorCode::kCorrupt, "'" + beside + "' was not left by a recorder: it " + what,
                 "find out where it came from, then remove it"};
  };
  for (const char* suffix : {"-wal", "-shm", "-journal"}) {
    const std::string beside = path + suffix;
    struct stat status {};
    if (lstat(beside.c_str(), &status) != 0) continue;
    if (!S_ISREG(status.st_mode)) return refuse(beside, "is not a regular file");
    if (status.st_nlink > 1) return refuse(beside, "is also known under another name");
    if (std::string_view(suffix) != "-journal") continue;
    const auto journal = OpenRegularFile(beside);
    if (journal && NamesAnotherFile(journal->get(), status.st_size))
      return refuse(beside, "asks to delete another file");
  }
  return {};
}

Error NotOpen() { return {ErrorCode::kUnavailable, "it is not open", ""}; }

// SQLite's own timeout does not cover every change of the journal mode: if another process is about to make
// the same change, it fails at once.
Result<void> ExecuteWhenFree(Database& database, const std::string& sql) {
  constexpr auto kPause = std::chrono::milliseconds(20);
  const int64_t deadline_ns = MonotonicNs() + kBusyTimeoutMs * kNsPerMs;
  while (true) {
    auto done = database.Execute(sql);
    if (done || done.error().code != ErrorCode::kUnavailable || MonotonicNs() >= deadline_ns) return done;
    std::this_thread::sleep_for(kPause);
  }
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
  const IndexGuard guard(writes_);
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW && (!allowance_ || allowance_->bytes >= 0)) return true;
  status_ = Result<void>();
  if (code == SQLITE_ROW)
    status_ = TooMuch();
  else if (code != SQLITE_DONE)
    status_ = ErrorOf(sqlite3_db_handle(statement_.get()), code, kCannotUse);
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

std::string_view Statement::TextView(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column));
  if (allowance_) allowance_->bytes -= static_cast<int64_t>(size);
  return data ? std::string_view(data, size) : std::string_view();
}

std::string Statement::Text(int column) const { return std::string(TextView(column)); }

Result<bool> MakeRunFile(const std::string& path) {
  const auto created = CreateFileIfMissing(path, kPrivateFile);
  struct stat file {};
  if (!created || !*created || lstat(path.c_str(), &file) != 0) return created;
  const auto age = [](const struct stat& status) {
    return std::pair(status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
  };
  for (const char* suffix : {"-wal", "-shm", "-journal"}) {
    const std::string beside = path + suffix;
    struct stat status {};
    // A newer one belongs to a stage that is already being recorded into this file.
    if (lstat(beside.c_str(), &status) != 0 || age(status) >= age(file)) continue;
    if (unlink(beside.c_str()) != 0 && errno != ENOENT)
      return ErrnoError("cannot remove '" + beside + "', which belongs to another run", errno);
  }
  return true;
}

Result<Database> Database::OpenForWriting(const std::string& path) {
  // The names beside the file can be guessed.
  const auto place = TrustedPath(std::filesystem::path(path).parent_path(), Others::kChosen);
  if (!place) return Error{place.error().code, "cannot write '" + path + "': " + place.error().text, ""};
  if (auto checked = CheckFilesBeside(path); !checked) return checked.error();
  if (auto made = MakeRunFile(path); !made) return made.error();
  const IndexGuard guard(true);
  const uint64_t lost_before = LostIndexes();
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database;
  database.db_.reset(raw);
  if (code != SQLITE_OK) return ErrorOf(raw, code, "cannot write '" + path + "'");
  database.lost_before_ = lost_before;
  sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  DistrustSchema(raw);
  // A small page cache: the recorder gets by on a few megabytes beside the training.
  const auto prepared = ExecuteWhenFree(
      database, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-512;");
  if (!prepared) {
    Error error = prepared.error();
    error.text = "cannot write '" + path + "': " + error.text;
    return error;
  }
  return database;
}

Result<Database> Database::OpenForReading(const std::string& path) {
  const auto snapshot = Snapshot::Take(path);
  if (!snapshot) return snapshot.error();
  // Nobody else knows the copy: the index of the log is kept in memory, and once everything is open,
  // the copy no longer has a name.
  const bool copy = snapshot->is_copy();
  sqlite3* raw = nullptr;
  const int flags =
      (copy ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(Uri(snapshot->path(), copy ? "?mode=rw" : "?immutable=1").c_str(), &raw,
                                   flags, nullptr);
  Database database;
  database.db_.reset(raw);
  if (code != SQLITE_OK) return ErrorOf(raw, code, kCannotUse);
  if (auto prepared = database.PrepareForReading(snapshot->bytes()); !prepared) return prepared.error();
  return database;
}

Result<void> Database::PrepareForReading(int64_t file_bytes) {
  file_bytes_ = file_bytes;
  DistrustSchema(db_.get());
  LimitStatements(db_.get());
  sqlite3_db_config(db_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  // SQLite then accepts a file that is shorter than its header says: the missing part fails when it is read,
  // not at once. (DEFENSIVE would reject it; but that guards against SQL that writes, and none is run.)
  sqlite3_db_config(db_.get(), SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, nullptr);
  allowance_ = std::make_shared<Allowance>(
      Allowance{kFreeSteps + kStepsPerByte * file_bytes, kFreeBytes + kReadsPerByte * file_bytes});
  sqlite3_progress_handler(db_.get(), kStepsBetweenLooks, TakeSteps, allowance_.get());
  auto prepared = Execute(
      "PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=-2048; PRAGMA mmap_size=0; PRAGMA "
      "cell_size_check=ON;");
  if (prepared) prepared = ReadSchema();
  if (prepared) sqlite3_set_authorizer(db_.get(), OnlySelect, nullptr);
  return prepared;
}

// The schema as SQLite understood it, not as the rows of sqlite_schema describe it.
Result<void> Database::ReadSchema() {
  auto tables = Prepare("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'");
  if (!tables) return tables.error();
  while (tables->Next()) columns_[tables->Text(0)];
  if (!tables->status().ok()) return tables->status();
  auto columns = Prepare("SELECT name, hidden FROM pragma_table_xinfo(?)");
  if (!columns) return columns.error();
  for (auto at = columns_.begin(); at != columns_.end();) {
    columns->Bind(at->first);
    bool plain = true;
    while (columns->Next()) {
      at->second.insert(columns->Text(0));
      plain = plain && columns->Int(1) == 0;
    }
    if (!columns->status().ok()) return columns->status();
    at = plain ? std::next(at) : columns_.erase(at);
  }
  return {};
}

const std::set<std::string>* Database::ColumnsOf(const std::string& table) const {
  const auto found = columns_.find(table);
  return found == columns_.end() ? nullptr : &found->second;
}

Result<void> Database::Execute(const std::string& sql) {
  if (!is_open()) return NotOpen();
  const IndexGuard guard(lost_before_.has_value());
  const int code = sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return ErrorOf(db_.get(), code, kCannotUse);
  if (lost_index()) return Error{ErrorCode::kUnavailable, "the index of its log cannot be written", ""};
  return {};
}

int64_t Database::changed_rows() const { return is_open() ? sqlite3_changes64(db_.get()) : 0; }

void Database::Close() {
  const IndexGuard guard(lost_before_.has_value());
  db_.reset();
}

bool Database::lost_index() const { return lost_before_ && LostIndexes() != *lost_before_; }

Result<Statement> Database::Prepare(std::string_view sql) {
  if (!is_open()) return NotOpen();
  const IndexGuard guard(lost_before_.has_value());
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v2(db_.get(), sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
  if (code != SQLITE_OK) return ErrorOf(db_.get(), code, kCannotUse);
  Statement statement;
  statement.statement_.reset(raw);
  statement.allowance_ = allowance_;
  statement.writes_ = lost_before_.has_value();
  return statement;
}

}  // namespace fullbore::record
