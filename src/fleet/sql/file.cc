#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/guarded_file.h"
#include "fleet/sql/sql.h"
#include "record/database.h"

namespace fullbore::fleet::sql {

namespace fs = std::filesystem;

namespace {

class FileRow : public Row {
 public:
  explicit FileRow(const record::Statement& statement) : statement_(statement) {}
  int64_t Int(int column) const override { return statement_.Int(column); }
  double Double(int column) const override { return statement_.Double(column); }
  std::string Text(int column) const override { return statement_.Text(column); }

 private:
  const record::Statement& statement_;
};

class File : public Connection {
 public:
  File(std::string path, record::Database database)
      : path_(std::move(path)), database_(std::move(database)) {}

  Result<bool> HasTable(const std::string& name) override {
    return Counts("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = $1", {name});
  }
  Result<bool> IsEmpty() override {
    const auto some = Counts("SELECT count(*) FROM sqlite_master", {});
    return some ? Result<bool>(!*some) : some;
  }
  Result<bool> MayDelete(const std::string&) override { return true; }
  Result<void> RunScript(const std::string& sql) override { return database_.Execute(sql); }

  Result<int64_t> Run(const std::string& sql, const Values& values) override {
    auto statement = Bound(sql, values);
    if (!statement) return statement.error();
    if (auto done = statement->Run(); !done) return done.error();
    return database_.changed_rows();
  }

  Result<void> Query(const std::string& sql, const Values& values,
                     const std::function<void(const Row&)>& each) override {
    auto statement = Bound(sql, values);
    if (!statement) return statement.error();
    const FileRow row(*statement);
    while (statement->Next()) each(row);
    return statement->status();
  }

  Result<void> Together(const std::function<Result<void>()>& work) override {
    if (auto begun = Begin(); !begun) return begun;
    Result<void> done = work();
    if (done) done = database_.Execute("COMMIT");
    if (!done) (void)database_.Execute("ROLLBACK");
    return done;
  }
  Result<void> Alone(const std::function<Result<void>()>& work) override { return Together(work); }

  Result<void> AtOneMoment(const std::function<Result<void>()>& work) override { return work(); }

  std::string name() const override { return path_; }

 private:
  // Waits for other writers: SQLite gives up after five seconds, which a slow disk may take to bring one's log in.
  Result<void> Begin() {
    constexpr int kAttempts = 24;
    for (int attempt = 1;; ++attempt) {
      auto begun = database_.Execute("BEGIN IMMEDIATE");
      if (begun || attempt == kAttempts) return begun;
    }
  }

  // SQLite numbers what follows a $ by where it stands first, and what follows a ? by the number itself.
  Result<record::Statement> Bound(std::string sql, const Values& values) {
    std::ranges::replace(sql, '$', '?');
    auto statement = database_.Prepare(sql);
    if (!statement) return statement;
    for (const Value& value : values) {
      if (const auto* text = std::get_if<std::string>(&value))
        statement->Bind(std::string_view(*text));
      else if (const auto* number = std::get_if<double>(&value))
        statement->Bind(*number);
      else
        statement->Bind(std::get<int64_t>(value));
    }
    return statement;
  }

  Result<bool> Counts(const std::string& sql, const Values& values) {
    bool some = false;
    if (auto asked = Query(sql, values, [&](const Row& row) { some = row.Int(0) > 0; }); !asked)
      return asked.error();
    return some;
  }

  std::string path_;
  record::Database database_;
};

Result<void> MakeFile(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty()) {
    if (auto made = MakeDirectory(parent, kPrivateDirectory); !made) return made.error();
  }
  auto made = record::MakeRunFile(path);
  return made ? Result<void>() : made.error();
}

}  // namespace

Result<std::unique_ptr<Connection>> ConnectFile(const std::string& path, Access access) {
  std::error_code ignored;
  if (access == Access::kRead) {
    auto database = record::Database::OpenForReading(path);
    if (!database) return database.error();
    return std::unique_ptr<Connection>(new File(path, std::move(*database)));
  }
  if (!fs::exists(path, ignored)) {
    if (auto made = MakeFile(path); !made) return made.error();
  }
  // What is no database is not even opened for writing.
  if (fs::file_size(path, ignored) > 0 && !fs::exists(path + "-wal", ignored)) {
    if (auto there = record::Database::OpenForReading(path); !there) return there.error();
  }
  auto database = record::Database::OpenForWriting(path);
  if (!database) return database.error();
  return std::unique_ptr<Connection>(new File(path, std::move(*database)));
}

}  // namespace fullbore::fleet::sql
