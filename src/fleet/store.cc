#include "fleet/store.h"

#define XXH_INLINE_ALL  // no library to link
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "fleet/migrate.h"
#include "fleet/tables.h"

namespace fullbore::fleet {

namespace {

// A row of a run by what it says of which file at which time: collectors that read the same put the same row.
int64_t KeyOf(const RunAccount& account, const Stamp& stamp) {
  const std::string whole = fmt::format("{}\n{}\n{}\n{}\n{}", account.path, account.id, account.begin_unix_ns,
                                        stamp.bytes, stamp.changed_ns);
  return static_cast<int64_t>(XXH3_64bits(whole.data(), whole.size()));
}

// The newest row of each run that began within $1 and $2, of user $3. A run is known by its id and when it began: a
// folder that is copied or moved holds the same runs; and by its id and path: one that goes on on several machines may
// have begun earlier than was known.
constexpr char kNewest[] =
    "WITH newest AS (SELECT r.*, {exempt} AS exemption FROM run r "
    "WHERE r.begin_unix_ns >= $1 AND r.begin_unix_ns < $2 AND ($3 = '' OR r.\"user\" = $3) "
    "AND NOT EXISTS (SELECT 1 FROM run n WHERE n.id = r.id AND (n.path = r.path OR n.begin_unix_ns = r.begin_unix_ns) "
    "AND (n.changed_ns, n.bytes, n.key) > (r.changed_ns, r.bytes, r.key))) ";

constexpr char kOrigin[] = R"("user", account, partition, device, exemption)";
constexpr char kApart = '\x1f';  // between a run's id and its title

}  // namespace

// The condition that tells which exemption applies, and its values.
class Selection {
 public:
  Selection(const Range& range, const std::vector<Exemption>& exemptions)
      : values_{range.since_unix_ns, range.until_unix_ns, range.user} {
    std::string cases;
    for (size_t i = 0; i < exemptions.size(); ++i)
      cases += fmt::format(" WHEN {} THEN {}", ConditionOf(exemptions[i]), i);
    newest_ = fmt::format(fmt::runtime(kNewest),
                          fmt::arg("exempt", cases.empty() ? "-1" : "CASE" + cases + " ELSE -1 END"));
  }

  std::string With(const std::string& sql) const { return newest_ + sql; }
  const sql::Values& values() const { return values_; }
  sql::Values ValuesAnd(sql::Value value) const {
    sql::Values all = values_;
    all.push_back(std::move(value));
    return all;
  }

 private:
  std::string ConditionOf(const Exemption& rule) {
    std::string all = "1 = 1";
    const std::pair<const char*, const std::string*> equal[] = {{"r.\"user\"", &rule.user},
                                                                {"r.account", &rule.account},
                                                                {"r.partition", &rule.partition},
                                                                {"r.device", &rule.device}};
    for (const auto& [column, value] : equal) {
      if (!value->empty()) all += fmt::format(" AND {} = {}", column, Placeholder(*value));
    }
    if (!rule.command.empty())
      all += fmt::format(R"( AND lower(r.command) LIKE lower({}) ESCAPE '!')",
                         Placeholder(Within(rule.command)));
    return all;
  }

  static std::string Within(const std::string& text) {
    std::string pattern = "%";
    for (const char c : text) {
      if (c == '%' || c == '_' || c == '!') pattern += '!';
      pattern += c;
    }
    return pattern + "%";
  }

  std::string Placeholder(const std::string& value) {
    values_.emplace_back(value);
    return fmt::format("${}", values_.size());
  }

  sql::Values values_;
  std::string newest_;
};

namespace {

Origin OriginOf(const sql::Row& row) {
  return {row.Text(0), row.Text(1), row.Text(2), row.Text(3), row.Int(4)};
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
  if (*version == 1) {
    const auto put = [&](const RunAccount& account, const Stamp& stamp) { return PutRows(account, stamp); };
    const auto move = [&]() -> Result<void> {
      const auto still = VersionOf(database);
      if (!still) return still.error();
      return *still == 1 ? MoveFromVersion1(database, put) : Result<void>();
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
  std::vector<OverAsked> all = OverAskedIn(account.use, account.ended && !account.EndedBadly());
  if (account.use.NeverTouchedItsGpu())
    all.push_back({"GPUs", static_cast<double>(account.use.gpus_given.value_or(account.devices)), 0});
  for (const OverAsked& each : all) {
    const auto done = connection_->Run("INSERT INTO asked VALUES ($1, $2, $3, $4)",
                                       {key, std::string(each.what), each.given, each.used});
    if (!done) return done.error();
  }
  return {};
}

Result<void> Store::DropOlder(const RunAccount& account, const Stamp& stamp) {
  const std::string older = "id = $1 AND (path = $2 OR begin_unix_ns = $3) AND changed_ns < $4";
  for (const char* table : {"part", "advice", "asked"}) {
    const auto done = connection_->Run(
        fmt::format("DELETE FROM {} WHERE run IN (SELECT key FROM run WHERE {})", table, older),
        {account.id, account.path, account.begin_unix_ns, stamp.changed_ns});
    if (!done) return done.error();
  }
  const auto done = connection_->Run("DELETE FROM run WHERE " + older,
                                     {account.id, account.path, account.begin_unix_ns, stamp.changed_ns});
  return done ? Result<void>() : done.error();
}

Result<Sums> Store::SumsOf(const Range& range, const std::vector<Exemption>& exemptions) {
  const Selection selection(range, exemptions);
  Sums sums;
  const auto read = connection_->AtOneMoment([&] { return ReadSums(selection, sums); });
  if (!read) return read.error();
  return sums;
}

Result<void> Store::ReadSums(const Selection& selection, Sums& sums) {
  auto asked = connection_->Query(
      selection.With(fmt::format("SELECT {0}, count(*), CAST(sum(given_ns) AS BIGINT), min(begin_unix_ns), "
                                 "max(begin_unix_ns) FROM newest GROUP BY {0}",
                                 kOrigin)),
      selection.values(), [&](const sql::Row& row) {
        sums.runs.push_back(
            {OriginOf(row), static_cast<size_t>(row.Int(5)), row.Int(6), row.Int(7), row.Int(8)});
      });
  if (!asked) return asked;
  asked = connection_->Query(
      selection.With(fmt::format("SELECT {0}, kind, cause, CAST(sum(device_ns) AS BIGINT) FROM newest "
                                 "JOIN part ON part.run = newest.key GROUP BY {0}, kind, cause",
                                 kOrigin)),
      selection.values(), [&](const sql::Row& row) {
        sums.parts.push_back({OriginOf(row), {KindNamed(row.Text(5)), row.Text(6), row.Int(7)}});
      });
  if (!asked) return asked;
  const sql::Values values = selection.ValuesAnd(std::string(1, kApart));
  asked = connection_->Query(
      selection.With(fmt::format(
          ", first AS (SELECT newest.\"user\", newest.id, advice.* FROM newest JOIN advice ON advice.run = newest.key "
          "WHERE place = 0 AND expected_ns > 0 AND exemption = -1), "
          "summed AS (SELECT \"user\", finding, cause, change, count(*) AS runs, CAST(sum(low_ns) AS BIGINT) AS low, "
          "CAST(sum(expected_ns) AS BIGINT) AS expected, CAST(sum(high_ns) AS BIGINT) AS high, "
          "max(expected_ns) AS most FROM first GROUP BY \"user\", finding, cause, change) "
          "SELECT s.\"user\", s.finding, s.cause, s.change, s.runs, s.low, s.expected, s.high, s.most, "
          "min(f.id || ${} || f.title) FROM summed s JOIN first f ON f.\"user\" = s.\"user\" AND f.finding = s.finding "
          "AND f.cause = s.cause AND f.change = s.change AND f.expected_ns = s.most "
          "GROUP BY s.\"user\", s.finding, s.cause, s.change, s.runs, s.low, s.expected, s.high, s.most",
          values.size())),
      values, [&](const sql::Row& row) {
        const std::string both = row.Text(9);
        const size_t apart = both.find(kApart);
        sums.fixes.push_back({row.Text(0), row.Text(1), row.Text(2), row.Text(3),
                              static_cast<size_t>(row.Int(4)), row.Int(5), row.Int(6), row.Int(7), row.Int(8),
                              both.substr(0, apart), both.substr(std::min(apart, both.size() - 1) + 1)});
      });
  if (!asked) return asked;
  asked = connection_->Query(
      selection.With(
          "SELECT \"user\", what, count(*), sum(given), sum(used) FROM newest "
          "JOIN asked ON asked.run = newest.key WHERE exemption = -1 "
          // What several runs of a job used together is not known here: a script and its steps are runs.
          "AND NOT EXISTS (SELECT 1 FROM run o WHERE o.job = newest.job AND o.\"user\" = newest.\"user\" "
          "AND o.id <> newest.id AND newest.job <> '') GROUP BY \"user\", what"),
      selection.values(), [&](const sql::Row& row) {
        sums.asked.push_back(
            {row.Text(0), row.Text(1), static_cast<size_t>(row.Int(2)), row.Double(3), row.Double(4)});
      });
  return asked;
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
