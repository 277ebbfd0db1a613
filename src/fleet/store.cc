#include "fleet/store.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/guarded_file.h"

namespace fullbore::fleet {

namespace fs = std::filesystem;

using record::Database;
using record::Statement;

namespace {

constexpr int64_t kVersion = 1;

// A run is known by its id and when it began: a folder that is copied or moved holds the same runs.
constexpr char kTables[] = R"sql(
CREATE TABLE IF NOT EXISTS fleet (version INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS seen (path TEXT PRIMARY KEY, bytes INTEGER, changed_ns INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS run (
  id TEXT, begin_unix_ns INTEGER, path TEXT, user TEXT, job TEXT, account TEXT, partition TEXT, device TEXT,
  devices INTEGER, given_ns INTEGER, ended INTEGER, command TEXT, verdict TEXT, node TEXT, steps_per_s REAL, directory TEXT,
  PRIMARY KEY (id, begin_unix_ns)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS run_begin ON run (begin_unix_ns);
CREATE INDEX IF NOT EXISTS run_path ON run (path);
CREATE TABLE IF NOT EXISTS part (
  id TEXT, begin_unix_ns INTEGER, kind TEXT, cause TEXT, device_ns INTEGER,
  PRIMARY KEY (id, begin_unix_ns, kind, cause)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS advice (
  id TEXT, begin_unix_ns INTEGER, place INTEGER, finding TEXT, cause TEXT, title TEXT, change TEXT, low REAL,
  expected REAL, high REAL, steady_ns INTEGER, PRIMARY KEY (id, begin_unix_ns, place)) WITHOUT ROWID;
)sql";

// Waits for the other collectors: SQLite gives up after five seconds, which a slow disk may take to bring one's log in.
Result<void> Begin(Database& database) {
  constexpr int kAttempts = 24;
  for (int attempt = 1;; ++attempt) {
    auto begun = database.Execute("BEGIN IMMEDIATE");
    if (begun || attempt == kAttempts) return begun;
  }
}

Error NotAStore(const std::string& path, const std::string& why) {
  return {ErrorCode::kInvalidArgument, fmt::format("'{}' is no fleet database: {}", path, why),
          "fullbore fleet collect DIR --to fleet.db makes one"};
}

// Nothing, too, for a database that was only begun: its tables are made in one transaction.
Result<void> CheckVersion(Database& database, const std::string& path) {
  auto version = database.Prepare("SELECT max(version) FROM fleet");
  if (!version) return NotAStore(path, "it has no such tables");
  if (!version->Next()) return NotAStore(path, "it cannot be read");
  if (version->Int(0) == kVersion) return {};
  return NotAStore(path, fmt::format("it is of version {}, and this fullbore knows version {}",
                                     version->Int(0), kVersion));
}

bool IsEmpty(Database& database) {
  auto tables = database.Prepare("SELECT count(*) FROM sqlite_master");
  return tables && tables->Next() && tables->Int(0) == 0;
}

}  // namespace

Result<Store> Store::Open(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    const fs::path parent = fs::path(path).parent_path();
    if (!parent.empty()) {
      if (auto made = MakeDirectory(parent, kPrivateDirectory); !made) return made.error();
    }
    if (auto made = record::MakeRunFile(path); !made) return made.error();
  }
  // What is no database of ours is not even opened for writing.
  if (fs::file_size(path, ignored) > 0 && !fs::exists(path + "-wal", ignored)) {
    auto there = Database::OpenForReading(path);
    if (!there) return NotAStore(path, there.error().text);
  }
  auto database = Database::OpenForWriting(path);
  if (!database) return database.error();
  if (auto begun = Begin(*database); !begun) return begun.error();
  Result<void> ready;
  if (IsEmpty(*database)) {
    ready = database->Execute(kTables);
    if (ready) ready = database->Execute(fmt::format("INSERT INTO fleet VALUES ({})", kVersion));
  } else {
    ready = CheckVersion(*database, path);
  }
  if (ready) ready = database->Execute("COMMIT");
  if (!ready) {
    (void)database->Execute("ROLLBACK");
    return ready.error();
  }
  return Store(std::move(*database));
}

Result<Store> Store::OpenForReading(const std::string& path) {
  auto database = Database::OpenForReading(path);
  if (!database) return NotAStore(path, database.error().text);
  if (auto known = CheckVersion(*database, path); !known) return known.error();
  return Store(std::move(*database));
}

Result<std::map<std::string, Stamp>> Store::Stamps() {
  auto rows = database_.Prepare("SELECT path, bytes, changed_ns FROM seen");
  if (!rows) return rows.error();
  std::map<std::string, Stamp> stamps;
  while (rows->Next()) stamps[rows->Text(0)] = {rows->Int(1), rows->Int(2)};
  if (!rows->status().ok()) return rows->status().error();
  return stamps;
}

Result<void> Store::Put(const RunAccount& account, const Stamp& stamp) {
  if (auto begun = Begin(database_); !begun) return begun;
  Result<void> put = PutRows(account, stamp);
  if (put) put = database_.Execute("COMMIT");
  if (!put) (void)database_.Execute("ROLLBACK");
  return put;
}

Result<void> Store::PutRows(const RunAccount& account, const Stamp& stamp) {
  const auto prepared = [&](const char* sql) { return database_.Prepare(sql); };
  // A run that goes on on several machines may have begun earlier than was known.
  auto known = prepared("SELECT id, begin_unix_ns FROM run WHERE path = ?");
  if (!known) return known.error();
  known->Bind(account.path);
  std::vector<std::pair<std::string, int64_t>> old = {{account.id, account.begin_unix_ns}};
  while (known->Next()) old.emplace_back(known->Text(0), known->Int(1));
  if (!known->status().ok()) return known->status();
  for (const char* table : {"part", "advice", "run"}) {
    auto rows = database_.Prepare(fmt::format("DELETE FROM {} WHERE id = ? AND begin_unix_ns = ?", table));
    if (!rows) return rows.error();
    for (const auto& [id, begin_unix_ns] : old) {
      if (auto gone = rows->Bind(id).Bind(begin_unix_ns).Run(); !gone) return gone;
    }
  }
  auto run = prepared("INSERT OR REPLACE INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  if (!run) return run.error();
  run->Bind(account.id).Bind(account.begin_unix_ns).Bind(account.path).Bind(account.user).Bind(account.job);
  run->Bind(account.account)
      .Bind(account.partition)
      .Bind(account.device)
      .Bind(account.devices)
      .Bind(account.given_ns);
  run->Bind(int64_t{account.ended})
      .Bind(account.command)
      .Bind(account.verdict)
      .Bind(account.node)
      .Bind(account.steps_per_s)
      .Bind(account.directory);
  if (auto done = run->Run(); !done) return done;
  auto part = prepared("INSERT INTO part VALUES (?, ?, ?, ?, ?)");
  if (!part) return part.error();
  for (const Part& each : account.parts) {
    part->Bind(account.id)
        .Bind(account.begin_unix_ns)
        .Bind(std::string_view(Name(each.kind)))
        .Bind(each.cause);
    if (auto done = part->Bind(each.device_ns).Run(); !done) return done;
  }
  auto advice = prepared("INSERT INTO advice VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  if (!advice) return advice.error();
  int64_t place = 0;
  for (const Advice& each : account.advice) {
    advice->Bind(account.id).Bind(account.begin_unix_ns).Bind(place++).Bind(each.finding).Bind(each.cause);
    advice->Bind(each.title).Bind(each.change).Bind(each.low).Bind(each.expected).Bind(each.high);
    if (auto done = advice->Bind(each.steady_ns).Run(); !done) return done;
  }
  auto seen = prepared("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)");
  if (!seen) return seen.error();
  return seen->Bind(account.path).Bind(stamp.bytes).Bind(stamp.changed_ns).Run();
}

Result<std::vector<RunAccount>> Store::Runs(int64_t since_unix_ns) {
  auto rows = database_.Prepare(
      "SELECT id, begin_unix_ns, path, user, job, account, partition, device, devices, given_ns, ended, command, "
      "verdict, node, steps_per_s, directory "
      "FROM run WHERE begin_unix_ns >= ? ORDER BY begin_unix_ns, id");
  if (!rows) return rows.error();
  rows->Bind(since_unix_ns);
  std::vector<RunAccount> runs;
  std::map<std::pair<std::string, int64_t>, size_t> place;
  while (rows->Next()) {
    RunAccount& run = runs.emplace_back();
    run.id = rows->Text(0);
    run.begin_unix_ns = rows->Int(1);
    run.path = rows->Text(2);
    run.user = rows->Text(3);
    run.job = rows->Text(4);
    run.account = rows->Text(5);
    run.partition = rows->Text(6);
    run.device = rows->Text(7);
    run.devices = rows->Int(8);
    run.given_ns = rows->Int(9);
    run.ended = rows->Int(10) != 0;
    run.command = rows->Text(11);
    run.verdict = rows->Text(12);
    run.node = rows->Text(13);
    run.steps_per_s = rows->Double(14);
    run.directory = rows->Text(15);
    place[{run.id, run.begin_unix_ns}] = runs.size() - 1;
  }
  if (!rows->status().ok()) return rows->status().error();
  const auto of = [&](const Statement& row) {
    const auto found = place.find({row.Text(0), row.Int(1)});
    return found == place.end() ? nullptr : &runs[found->second];
  };
  auto parts = database_.Prepare(
      "SELECT id, begin_unix_ns, kind, cause, device_ns FROM part WHERE begin_unix_ns >= ?");
  if (!parts) return parts.error();
  parts->Bind(since_unix_ns);
  while (parts->Next()) {
    if (RunAccount* run = of(*parts))
      AddUp(run->parts, {KindNamed(parts->Text(2)), parts->Text(3), parts->Int(4)});
  }
  if (!parts->status().ok()) return parts->status().error();
  auto advice = database_.Prepare(
      "SELECT id, begin_unix_ns, finding, cause, title, change, low, expected, high, steady_ns FROM advice "
      "WHERE begin_unix_ns >= ? ORDER BY id, begin_unix_ns, place");
  if (!advice) return advice.error();
  advice->Bind(since_unix_ns);
  while (advice->Next()) {
    RunAccount* run = of(*advice);
    if (!run) continue;
    run->advice.push_back({advice->Text(2), advice->Text(3), advice->Text(4), advice->Text(5),
                           advice->Double(6), advice->Double(7), advice->Double(8), advice->Int(9)});
  }
  if (!advice->status().ok()) return advice->status().error();
  return runs;
}

}  // namespace fullbore::fleet
