#include "record/alert_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "record/database.h"
#include "record/json_text.h"
#include "record/limits.h"
#include "record/run_schema.h"

namespace fullbore::record {

namespace {

constexpr size_t kMostRows = 10'000;

// One transaction in the run file. Where no recorder has it open any more, it is left as one file, as the recorder
// itself leaves it.
template <typename Call>
auto Write(const std::string& path, Call call) -> decltype(call(std::declval<Database&>())) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0)  // opening would create it
    return ErrnoError("cannot write alerts to '" + path + "'", errno);
  auto database = Database::OpenForWriting(path);
  if (!database) return database.error();
  if (auto begun = database->Execute("BEGIN IMMEDIATE"); !begun) return begun.error();
  auto made = database->Execute(kAlertTable);
  auto result = made ? call(*database) : made.error();
  const auto ended = database->Execute(result ? "COMMIT" : "ROLLBACK");
  if (result && !ended) return ended.error();
  auto running = database->Prepare("SELECT count(*) FROM stage WHERE state = 0");
  const bool recorded = !running || (running->Next() && running->Int(0) > 0);
  if (running) {
    while (running->Next()) {
    }
  }
  if (!recorded) (void)database->Execute("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode=DELETE;");
  return result;
}

Result<int64_t> NumberOf(Database& database, const char* sql) {
  auto statement = database.Prepare(sql);
  if (!statement) return statement.error();
  const int64_t number = statement->Next() ? statement->Int(0) : 0;
  while (statement->Next()) {
  }
  if (auto status = statement->status(); !status) return status.error();
  return number;
}

std::string TextOf(const std::set<std::string>& undelivered) { return nlohmann::json(undelivered).dump(); }

std::set<std::string> UndeliveredIn(const std::string& text) {
  std::set<std::string> undelivered;
  for (const auto& each : ParseJson(text)) {
    if (each.is_string()) undelivered.insert(each.get<std::string>());
  }
  return undelivered;
}

struct Owed {
  int64_t id = 0;
  std::set<std::string> undelivered;
};

// Of the row that a query gives as id and undelivered; nothing without one.
Result<std::optional<Owed>> OwedBy(Statement& query) {
  std::optional<Owed> owed;
  while (query.Next()) owed = {query.Int(0), UndeliveredIn(std::string(query.Text(1)))};
  if (auto status = query.status(); !status) return status.error();
  return owed;
}

}  // namespace

Result<AlertLog> AlertLog::Of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return ErrnoError("cannot write alerts to '" + path + "'", errno);
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid()) {
    return Error{ErrorCode::kPermission, "cannot write alerts to '" + path + "': it belongs to somebody else",
                 "watch it as the user who records it"};
  }
  return AlertLog(path);
}

Result<std::optional<int64_t>> AlertLog::Fire(const AlertRow& row) const {
  return Write(path_, [&](Database& database) -> Result<std::optional<int64_t>> {
    auto insert = database.Prepare(
        "INSERT INTO alert (stage, rule, since_ns, fired_ns, what, details, undelivered) SELECT ?1, ?2, ?3, "
        "?4, ?5, ?6, ?7 WHERE NOT EXISTS (SELECT 1 FROM alert WHERE stage = ?1 AND rule = ?2 AND resolved_ns IS NULL)");
    if (!insert) return insert.error();
    insert->Bind(row.stage)
        .Bind(row.rule)
        .Bind(row.since_ns)
        .Bind(row.fired_ns)
        .Bind(row.what)
        .Bind(row.details);
    if (auto done = insert->Bind(TextOf(row.undelivered)).Run(); !done) return done.error();
    const auto written = NumberOf(database, "SELECT changes()");
    if (!written) return written.error();
    if (*written == 0) return std::optional<int64_t>();
    const auto id = NumberOf(database, "SELECT last_insert_rowid()");
    if (!id) return id.error();
    return std::optional<int64_t>(*id);
  });
}

Result<bool> AlertLog::Resolve(const AlertRow& row) const {
  return Write(path_, [&](Database& database) -> Result<bool> {
    auto open = database.Prepare(
        "SELECT id, undelivered FROM alert WHERE stage = ? AND rule = ? AND resolved_ns IS NULL");
    if (!open) return open.error();
    auto owed = OwedBy(open->Bind(row.stage).Bind(row.rule));
    if (!owed) return owed.error();
    if (!*owed) return false;
    (*owed)->undelivered.insert(row.undelivered.begin(), row.undelivered.end());
    auto update =
        database.Prepare("UPDATE alert SET resolved_ns = ?, details = ?, undelivered = ? WHERE id = ?");
    if (!update) return update.error();
    update->Bind(row.resolved_ns.value_or(row.fired_ns)).Bind(row.details);
    if (auto done = update->Bind(TextOf((*owed)->undelivered)).Bind((*owed)->id).Run(); !done)
      return done.error();
    return true;
  });
}

Result<void> AlertLog::Settle(int64_t id, const std::set<std::string>& delivered) const {
  return Write(path_, [&](Database& database) -> Result<void> {
    auto row = database.Prepare("SELECT id, undelivered FROM alert WHERE id = ?");
    if (!row) return row.error();
    auto owed = OwedBy(row->Bind(id));
    if (!owed) return owed.error();
    if (!*owed) return {};
    for (const std::string& each : delivered) (*owed)->undelivered.erase(each);
    auto update = database.Prepare("UPDATE alert SET undelivered = ? WHERE id = ?");
    if (!update) return update.error();
    return update->Bind(TextOf((*owed)->undelivered)).Bind(id).Run();
  });
}

Result<std::vector<AlertRow>> ReadAlerts(const std::string& path) {
  auto database = Database::OpenForReading(path);
  if (!database) return database.error();
  std::vector<AlertRow> rows;
  if (database->ColumnsOf("alert") == nullptr) return rows;
  auto statement = database->Prepare(
      "SELECT id, stage, rule, since_ns, fired_ns, resolved_ns, what, details, undelivered FROM alert");
  if (!statement) return statement.error();
  const auto moment = [&](int column) { return std::clamp(statement->Int(column), -kMaxNs, kMaxNs); };
  while (rows.size() < kMostRows && statement->Next()) {
    AlertRow& row = rows.emplace_back();
    row.id = statement->Int(0);
    row.stage = statement->Int(1);
    row.rule = statement->Text(2);
    row.since_ns = moment(3);
    row.fired_ns = moment(4);
    if (!statement->IsNull(5)) row.resolved_ns = moment(5);
    row.what = statement->Text(6);
    row.details = statement->Text(7);
    row.undelivered = UndeliveredIn(std::string(statement->Text(8)));
  }
  if (rows.empty() && !statement->status().ok()) return statement->status().error();
  std::ranges::stable_sort(rows, {}, &AlertRow::fired_ns);
  return rows;
}

}  // namespace fullbore::record
