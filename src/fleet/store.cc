#include "fleet/store.h"

#define XXH_INLINE_ALL  // no library to link
#include <fmt/format.h>
#include <xxhash.h>

#include <filesystem>
#include <utility>

#include "base/text.h"
#include "fleet/migrate.h"
#include "fleet/read_sums.h"
#include "fleet/selection.h"
#include "fleet/tables.h"

namespace fullbore::fleet {

namespace {

// A row of a run by what it says of which file at which time: collectors that read the same put the same row.
int64_t KeyOf(const RunAccount& account, const Stamp& stamp) {
  const std::string whole = fmt::format("{}\n{}\n{}\n{}\n{}", account.path, account.id, account.begin_unix_ns,
                                        stamp.bytes, stamp.changed_ns);
  return static_cast<int64_t>(XXH3_64bits(whole.data(), whole.size()));
}

Error NotAStore(const std::string& name, const std::string& why) {
  return {ErrorCode::kInvalidArgument, fmt::format("'{}' is no fleet database: {}", name, why),
          "fullbore fleet collect DIR --to fleet.db makes one"};
}

Result<std::unique_ptr<sql::Connection>> Connected(const std::string& target, sql::Access access) {
  auto connection = sql::Connect(target, access);
  if (connection || sql::IsServer(target) || connection.error().code == ErrorCode::kPermission)
    return connection;
  return NotAStore(target, connection.error().text);
}

Result<int64_t> VersionOf(sql::Connection& connection) {
  int64_t version = 0;
  const auto asked = connection.Query("SELECT max(version) FROM fleet", {},
                                      [&](const sql::Row& row) { version = row.Int(0); });
  // A role that may only insert need not know: another version's tables would refuse its rows.
  if (!asked && asked.error().code == ErrorCode::kPermission) return kVersion;
  if (!asked) return NotAStore(connection.name(), asked.error().text);
  return version;
}

Error OtherVersion(const sql::Connection& connection, int64_t version) {
  Error error =
      NotAStore(connection.name(),
                fmt::format("it is of version {}, and this fullbore knows version {}", version, kVersion));
  if (version >= 1 && version < kVersion)
    error.hint = fmt::format("fullbore fleet collect DIR --to '{}' brings it up to date", connection.name());
  return error;
}

Result<void> MakeTables(sql::Connection& connection) {
  const auto there = connection.HasTable("fleet");
  if (!there) return there.error();
  if (*there) return {};  // another collector was quicker
  const auto empty = connection.IsEmpty();
  if (!empty) return empty.error();
  return *empty ? connection.RunScript(TablesSql()) : NotAStore(connection.name(), "it has no such tables");
}

}  // namespace

Result<Store> Store::Open(const std::string& target) {
  auto connection = Connected(target, sql::Access::kWrite);
  if (!connection) return connection.error();
  Store store(std::move(*connection));
  if (auto ready = store.Prepare(); !ready) return ready.error();
  return store;
}

Result<void> Store::Prepare() {
  sql::Connection& database = *connection_;
  const auto there = database.HasTable("fleet");
  if (!there) return there.error();
  if (!*there) {
    if (auto made = database.Alone([&] { return MakeTables(database); }); !made) return made;
  }
  const auto version = VersionOf(database);
  if (!version) return version.error();
  if (*version == 1 || *version == 2) {
    const auto put = [&](const RunAccount& account, const Stamp& stamp) { return PutRows(account, stamp); };
    const auto move = [&]() -> Result<void> {
      const auto still = VersionOf(database);
      if (!still) return still.error();
      if (*still == 1) return MoveFromVersion1(database, put);
      return *still == 2 ? MoveFromVersion2(database) : Result<void>();
    };
    if (auto moved = database.Alone(move); !moved) return moved;
  } else if (*version != kVersion) {
    return OtherVersion(database, *version);
  }
  const auto may = database.MayDelete("run");
  if (!may) return may.error();
  may_delete_ = *may;
  return {};
}

Result<Store> Store::OpenForReading(const std::string& target) {
  std::error_code ignored;
  if (!sql::IsServer(target) && !std::filesystem::exists(target, ignored)) {
    return Error{ErrorCode::kNotFound, fmt::format("there is no '{}'", target),
                 fmt::format("fullbore fleet collect DIR --to {} makes it", ShellQuote(target))};
  }
  auto connection = Connected(target, sql::Access::kRead);
  if (!connection) return connection.error();
  const auto there = (*connection)->HasTable("fleet");
  if (!there) return there.error();
  if (!*there) return NotAStore((*connection)->name(), "it has no such tables");
  const auto version = VersionOf(**connection);
  if (!version) return version.error();
  if (*version != kVersion) return OtherVersion(**connection, *version);
  return Store(std::move(*connection));
}

Result<std::set<std::pair<std::string, Stamp>>> Store::Seen() {
  std::set<std::pair<std::string, Stamp>> seen;
  const auto asked =
      connection_->Query("SELECT path, bytes, changed_ns FROM run", {}, [&](const sql::Row& row) {
        seen.insert({row.Text(0), {row.Int(1), row.Int(2)}});
      });
  if (!asked) return asked.error();
  return seen;
}

Result<void> Store::Put(const RunAccount& account, const Stamp& stamp) {
  return connection_->Together([&] { return PutRows(account, stamp); });
}

Result<void> Store::PutRows(const RunAccount& account, const Stamp& stamp) {
  const int64_t key = KeyOf(account, stamp);
  sql::Values values = {key, stamp.bytes, stamp.changed_ns};
  AddRunValues(account, values);
  const auto added =
      connection_->Run(fmt::format("INSERT INTO run (key, bytes, changed_ns, {}) VALUES ($1, $2, $3, {}) "
                                   "ON CONFLICT DO NOTHING",
                                   RunColumns(), RunPlaceholders(4)),
                       values);
  if (!added) return added.error();
  if (*added == 0) return {};  // another collector has put it, whole
  for (const Part& part : account.parts) {
    const auto done = connection_->Run("INSERT INTO part VALUES ($1, $2, $3, $4)",
                                       {key, std::string(Name(part.kind)), part.cause, part.device_ns});
    if (!done) return done.error();
  }
  int64_t place = 0;
  for (const Advice& each : account.advice) {
    const auto done = connection_->Run(
        "INSERT INTO advice VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        {key, place++, each.finding, each.cause, each.title, each.change, each.low, each.expected, each.high,
         each.steady_ns, each.SavesNs(each.low), each.SavesNs(each.expected), each.SavesNs(each.high)});
    if (!done) return done.error();
  }
  if (auto done = PutAsked(key, account); !done) return done;
  return may_delete_ ? DropOlder(account, stamp) : Result<void>();
}

Result<void> Store::PutAsked(int64_t key, const RunAccount& account) {
  for (const Amount& each : AmountsOf(account.use, account.ended && !account.EndedBadly())) {
    const auto done = connection_->Run("INSERT INTO asked VALUES ($1, $2, $3, $4, $5, $6)",
                                       {key, std::string(each.what), each.given, each.used,
                                        int64_t{each.hardly_used}, int64_t{account.use.sees_runs_within}});
    if (!done) return done.error();
  }
  return {};
}

// A copy elsewhere stays, so that it is known and not read again; Selection passes over it.
Result<void> Store::DropOlder(const RunAccount& account, const Stamp& stamp) {
  const std::string older =
      "id = $1 AND path = $2 AND \"user\" = $3 AND (end_unix_ns, changed_ns) < ($4, $5)";
  const sql::Values values = {account.id, account.path, account.user, account.end_unix_ns, stamp.changed_ns};
  for (const char* table : {"part", "advice", "asked"}) {
    const auto done = connection_->Run(
        fmt::format("DELETE FROM {} WHERE run IN (SELECT key FROM run WHERE {})", table, older), values);
    if (!done) return done.error();
  }
  const auto done = connection_->Run("DELETE FROM run WHERE " + older, values);
  return done ? Result<void>() : done.error();
}

Result<Sums> Store::SumsOf(const Range& range, const std::vector<Exemption>& exemptions) {
  const Selection selection(range, exemptions);
  Sums sums;
  const auto read = connection_->AtOneMoment([&] { return ReadSums(selection, *connection_, sums); });
  if (!read) return read.error();
  return sums;
}

Result<std::vector<std::string>> Store::PathsOf(const std::string& id) {
  const Selection selection({}, {});
  std::vector<std::string> paths;
  const auto asked =
      connection_->Query(selection.With("SELECT path FROM newest WHERE job = $4 OR id = $4"),
                         selection.ValuesAnd(id), [&](const sql::Row& row) { paths.push_back(row.Text(0)); });
  if (!asked) return asked.error();
  return paths;
}

Result<std::vector<RunAccount>> Store::Runs(const Range& range) {
  const Selection selection(range, {});
  std::vector<RunAccount> runs;
  const auto asked = connection_->Query(
      selection.With(fmt::format("SELECT {} FROM newest ORDER BY begin_unix_ns, id", RunColumns())),
      selection.values(), [&](const sql::Row& row) { TakeRunRow(row, 0, runs.emplace_back()); });
  if (!asked) return asked.error();
  return runs;
}

}  // namespace fullbore::fleet
