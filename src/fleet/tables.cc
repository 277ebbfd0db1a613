#include "fleet/tables.h"

#include <fmt/format.h>

#include <iterator>
#include <type_traits>
#include <variant>

namespace fullbore::fleet {

namespace {

using Field =
    std::variant<std::string RunAccount::*, int64_t RunAccount::*, double RunAccount::*, bool RunAccount::*>;

struct Column {
  const char* name;
  Field field;
};

const Column kColumns[] = {
    {"id", &RunAccount::id},
    {"begin_unix_ns", &RunAccount::begin_unix_ns},
    {"path", &RunAccount::path},
    {"\"user\"", &RunAccount::user},  // a word of SQL
    {"job", &RunAccount::job},
    {"job_name", &RunAccount::job_name},
    {"account", &RunAccount::account},
    {"partition", &RunAccount::partition},
    {"device", &RunAccount::device},
    {"devices", &RunAccount::devices},
    {"given_ns", &RunAccount::given_ns},
    {"end_unix_ns", &RunAccount::end_unix_ns},
    {"ended", &RunAccount::ended},
    {"command", &RunAccount::command},
    {"verdict", &RunAccount::verdict},
    {"node", &RunAccount::node},
    {"steps_per_s", &RunAccount::steps_per_s},
    {"directory", &RunAccount::directory},
};

const char* TypeOf(const Field& field) {
  if (std::holds_alternative<std::string RunAccount::*>(field)) return "TEXT";
  if (std::holds_alternative<double RunAccount::*>(field)) return "DOUBLE PRECISION";
  return "BIGINT";
}

}  // namespace

std::string TablesSql() {
  std::string columns;
  for (const Column& column : kColumns)
    columns += fmt::format("  {} {} NOT NULL,\n", column.name, TypeOf(column.field));
  return "CREATE TABLE fleet (version BIGINT PRIMARY KEY);\n"
         "CREATE TABLE run (\n  key BIGINT PRIMARY KEY,\n  bytes BIGINT NOT NULL,\n  changed_ns BIGINT NOT NULL,\n" +
         columns.substr(0, columns.rfind(',')) +
         ");\n"
         "CREATE INDEX run_begin ON run (begin_unix_ns);\n"
         "CREATE INDEX run_id ON run (id);\n"
         "CREATE INDEX run_job ON run (job);\n"
         "CREATE TABLE part (run BIGINT NOT NULL, kind TEXT NOT NULL, cause TEXT NOT NULL, device_ns BIGINT NOT NULL,"
         " PRIMARY KEY (run, kind, cause));\n"
         "CREATE TABLE advice (run BIGINT NOT NULL, place BIGINT NOT NULL, finding TEXT NOT NULL, cause TEXT NOT NULL,"
         " title TEXT NOT NULL, change TEXT NOT NULL, low DOUBLE PRECISION NOT NULL,"
         " expected DOUBLE PRECISION NOT NULL, high DOUBLE PRECISION NOT NULL, steady_ns BIGINT NOT NULL,"
         " low_ns BIGINT NOT NULL, expected_ns BIGINT NOT NULL, high_ns BIGINT NOT NULL, PRIMARY KEY (run, place));\n"
         "CREATE TABLE asked (run BIGINT NOT NULL, what TEXT NOT NULL, given DOUBLE PRECISION NOT NULL,"
         " used DOUBLE PRECISION NOT NULL, hardly BIGINT NOT NULL DEFAULT 1, within BIGINT NOT NULL DEFAULT 0,"
         " PRIMARY KEY (run, what));\n" +
         fmt::format("INSERT INTO fleet VALUES ({});\n", kVersion);
}

const std::string& RunColumns() {
  static const std::string columns = [] {
    std::string all;
    for (const Column& column : kColumns) all += (all.empty() ? "" : ", ") + std::string(column.name);
    return all;
  }();
  return columns;
}

std::string RunPlaceholders(size_t first) {
  std::string all;
  for (size_t i = 0; i < std::size(kColumns); ++i) all += fmt::format("{}${}", i == 0 ? "" : ", ", first + i);
  return all;
}

void AddRunValues(const RunAccount& account, sql::Values& values) {
  for (const Column& column : kColumns) {
    std::visit(
        [&](const auto field) {
          if constexpr (std::is_same_v<decltype(field), bool RunAccount::*const>)
            values.emplace_back(int64_t{account.*field});
          else
            values.emplace_back(account.*field);
        },
        column.field);
  }
}

void TakeRunRow(const sql::Row& row, int first_column, RunAccount& account) {
  int at = first_column;
  for (const Column& column : kColumns) {
    if (const auto* text = std::get_if<std::string RunAccount::*>(&column.field))
      account.*(*text) = row.Text(at);
    else if (const auto* number = std::get_if<double RunAccount::*>(&column.field))
      account.*(*number) = row.Double(at);
    else if (const auto* yes = std::get_if<bool RunAccount::*>(&column.field))
      account.*(*yes) = row.Int(at) != 0;
    else
      account.*std::get<int64_t RunAccount::*>(column.field) = row.Int(at);
    ++at;
  }
}

}  // namespace fullbore::fleet
