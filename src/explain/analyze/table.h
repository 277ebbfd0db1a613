// What a section returns: a small table, the same for the terminal, CSV and JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

namespace fullbore::analyze {

// `name` carries the unit as names everywhere do ("sum_ns"); `unit` is one of "ns", "count", "ratio",
// "bytes", "bytes/s", "flops", "flops/s" and "" for texts and plain numbers.
struct Column {
  const char* name;
  const char* unit;
};

using Cell = std::variant<std::monostate, int64_t, double, std::string>;  // monostate: unknown

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::vector<std::string> notes;  // what readers have to know about the figures: sentences

  void Add(std::vector<Cell> row) { rows.push_back(std::move(row)); }
  void Note(const std::string& text);  // a repeated note is kept once
};

// Aligned columns with human-readable units, at most `most_rows` rows, names cut to fit `width`, all
// printable. If that is still too wide, each row takes several lines: its name, then the other cells, each
// after its heading.
std::string ToText(const Table& table, size_t most_rows, int width, bool unicode);
std::string CsvHeader(const std::vector<Column>& columns);
// RFC 4180: a header line, plain numbers, printable texts, empty cells for the unknown.
std::string ToCsv(const Table& table);
nlohmann::ordered_json ToJson(
    const Table& table);  // {"columns": [{name, unit}], "rows": [[...]], "notes": []}

}  // namespace fullbore::analyze
