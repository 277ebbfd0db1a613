// The content of a run file's rows: a golden run with some values changed, also inside its JSON texts and its
// blocks of columns, written as a complete database. Bytes changed at random (run_fuzz) hardly ever get past
// SQLite and zstd.
//
// The input names one of the golden runs and lists edits: a table, a row and whether to double it, a column, a value.
#include <sqlite3.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include "base/testing/source_directory.h"
#include "fuzzed_file.h"
#include "fuzzed_input.h"
#include "fuzzed_run.h"
#include "record/columns.h"
#include "record/run_schema.h"

namespace fullbore::fuzz {
namespace {

struct Blob {
  std::string bytes;
};
using Value = std::variant<std::monostate, int64_t, double, std::string, Blob>;
using Row = std::vector<Value>;

struct Table {
  const char* name;
  std::vector<Row> rows;
};

constexpr std::array kTables = {"meta", "tag",    "machine", "stage",       "series",  "readings",
                                "rank", "loader", "step",    "step_window", "process", "message"};

nlohmann::json JsonFrom(Input& input) {
  switch (input.Byte() % 6) {
    case 0:
      return input.Integer();
    case 1:
      return input.Real();
    case 2:
      return input.Bytes(input.Byte());
    case 3:
      return nullptr;
    case 4:
      return nlohmann::json::array({input.Integer()});
    default:
      return nlohmann::json{{input.Bytes(4), input.Integer()}};
  }
}

// Changes one value of a JSON text, at any depth, or the whole text.
void ChangeJson(std::string& text, Input& input) {
  nlohmann::json whole = nlohmann::json::parse(text, nullptr, false);
  nlohmann::json* at = &whole;
  while (at->is_structured() && !at->empty() && input.Byte() % 8 != 0)
    at = &*std::next(at->begin(), static_cast<std::ptrdiff_t>(input.Below(at->size())));
  *at = JsonFrom(input);
  text = whole.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Changes one value of a block, or a column's length.
void ChangeBlock(std::string& bytes, Input& input) {
  auto columns = record::DecodeColumns(bytes);
  if (!columns || columns->empty()) return;
  record::Column& column = (*columns)[input.Below(columns->size())];
  switch (input.Byte() % 8) {
    case 0:
      columns->push_back(column);
      break;
    case 1:
      columns->pop_back();
      break;
    case 2:
      column.values.resize(input.Below(300), input.Integer());
      if (!column.present.empty()) column.present.resize(column.values.size());
      break;
    case 3:
      std::fill(column.values.begin(), column.values.end(), input.Integer());
      break;
    default:
      if (!column.values.empty()) column.values[input.Below(column.values.size())] = input.Integer();
  }
  bytes = record::EncodeColumns(*columns);
}

void ChangeValue(Value& value, Input& input) {
  switch (input.Byte() % 8) {
    case 0:
      value = std::monostate();
      break;
    case 1:
    case 2:
      value = input.Integer();
      break;
    case 3:
      value = input.Real();
      break;
    case 4:
      value = input.Bytes(input.Byte());
      break;
    default:
      if (auto* text = std::get_if<std::string>(&value))
        ChangeJson(*text, input);
      else if (auto* blob = std::get_if<Blob>(&value))
        ChangeBlock(blob->bytes, input);
      else
        value = input.Integer();
  }
}

void Change(std::vector<Table>& tables, Input& input) {
  Table& table = tables[input.Byte() % tables.size()];
  if (table.rows.empty()) table.rows.emplace_back(5);
  const size_t row = input.Below(table.rows.size());
  constexpr size_t kMaxRows = 200;  // a doubled row has the other's key until that is changed, too
  if (input.Byte() % 4 == 0 && table.rows.size() < kMaxRows) table.rows.push_back(table.rows[row]);
  Row& changed = input.Byte() % 2 == 0 ? table.rows[row] : table.rows.back();
  ChangeValue(changed[input.Byte() % changed.size()], input);
}

struct Statement {
  Statement(sqlite3* db, const std::string& sql) {
    FB_CHECK(sqlite3_prepare_v2(db, sql.c_str(), -1, &get, nullptr) == SQLITE_OK);
  }
  ~Statement() { sqlite3_finalize(get); }
  sqlite3_stmt* get = nullptr;
};

std::vector<Table> ReadGolden(const std::string& path) {
  sqlite3* db = nullptr;
  const std::string uri = std::string("file:") + path + "?immutable=1";
  FB_CHECK(sqlite3_open_v2(uri.c_str(), &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr) == SQLITE_OK);
  std::vector<Table> tables;
  for (const char* name : kTables) {
    Table& table = tables.emplace_back(Table{name, {}});
    const Statement all(db, std::string("SELECT * FROM ") + name);
    while (sqlite3_step(all.get) == SQLITE_ROW) {
      Row& row = table.rows.emplace_back();
      for (int c = 0; c < sqlite3_column_count(all.get); ++c) {
        const auto* bytes = static_cast<const char*>(sqlite3_column_blob(all.get, c));
        const std::string text(bytes ? bytes : "", static_cast<size_t>(sqlite3_column_bytes(all.get, c)));
        switch (sqlite3_column_type(all.get, c)) {
          case SQLITE_INTEGER:
            row.emplace_back(static_cast<int64_t>(sqlite3_column_int64(all.get, c)));
            break;
          case SQLITE_FLOAT:
            row.emplace_back(sqlite3_column_double(all.get, c));
            break;
          case SQLITE_TEXT:
            row.emplace_back(text);
            break;
          case SQLITE_BLOB:
            row.emplace_back(Blob{text});
            break;
          default:
            row.emplace_back();
        }
      }
    }
  }
  sqlite3_close(db);
  return tables;
}

void Bind(sqlite3_stmt* statement, int at, const Value& value) {
  if (const auto* integer = std::get_if<int64_t>(&value))
    sqlite3_bind_int64(statement, at, *integer);
  else if (const auto* real = std::get_if<double>(&value))
    sqlite3_bind_double(statement, at, *real);
  else if (const auto* text = std::get_if<std::string>(&value))
    sqlite3_bind_text64(statement, at, text->data(), text->size(), SQLITE_STATIC, SQLITE_UTF8);
  else if (const auto* blob = std::get_if<Blob>(&value))
    sqlite3_bind_blob64(statement, at, blob->bytes.data(), blob->bytes.size(), SQLITE_STATIC);
  else
    sqlite3_bind_null(statement, at);
}

// The bytes of a database in memory.
std::string Written(const std::vector<Table>& tables) {
  sqlite3* db = nullptr;
  FB_CHECK(sqlite3_open(":memory:", &db) == SQLITE_OK);
  FB_CHECK(sqlite3_exec(db, record::kRunTables, nullptr, nullptr, nullptr) == SQLITE_OK);
  for (const Table& table : tables) {
    const Statement count(db, std::string("SELECT * FROM ") + table.name);
    const int columns = sqlite3_column_count(count.get);
    std::string marks = "?";
    for (int c = 1; c < columns; ++c) marks += ", ?";
    const Statement insert(db,
                           std::string("INSERT OR IGNORE INTO ") + table.name + " VALUES (" + marks + ")");
    for (const Row& row : table.rows) {
      for (int c = 0; c < columns && static_cast<size_t>(c) < row.size(); ++c)
        Bind(insert.get, c + 1, row[static_cast<size_t>(c)]);
      (void)sqlite3_step(insert.get);
      sqlite3_reset(insert.get);
      sqlite3_clear_bindings(insert.get);
    }
  }
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(db, "main", &size, 0);
  FB_CHECK(bytes != nullptr);
  std::string written(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(db);
  return written;
}

}  // namespace
}  // namespace fullbore::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fullbore::fuzz;
  static const FuzzedFile file(".fbr");
  static const std::array<std::vector<Table>, 2> goldens = {
      ReadGolden(fullbore::testing::SourceDirectory() + "/tests/golden/resnet-no-workers.fbr"),
      ReadGolden(fullbore::testing::SourceDirectory() + "/tests/golden/resnet-one-worker.fbr")};
  Input input(data, size);
  std::vector<Table> tables = goldens[input.Byte() % goldens.size()];
  constexpr int kMaxEdits = 64;
  for (int edit = 0; edit < kMaxEdits && !input.empty(); ++edit) Change(tables, input);
  const std::string bytes = Written(tables);
  ThroughAllReports(file.Write(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  return 0;
}
