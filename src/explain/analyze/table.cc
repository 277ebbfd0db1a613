#include "explain/analyze/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/printable.h"
#include "base/text.h"

namespace fullbore::analyze {
namespace {

constexpr int kMinNameWidth = 16;  // a text column is not cut below this

// "1.25 ms", "830 ns": three digits, so that a column of them can be compared.
std::string Time(double ns) {
  const double size = std::abs(ns);
  if (size >= 1e9) return fmt::format("{:.3f} s ", ns / 1e9);
  if (size >= 1e6) return fmt::format("{:.2f} ms", ns / 1e6);
  if (size >= 1e3) return fmt::format("{:.2f} us", ns / 1e3);
  return fmt::format("{:.0f} ns", ns);
}

// "610 TFLOP".
std::string Flops(double value) {
  constexpr std::pair<double, const char*> kUnits[] = {
      {1e15, "PFLOP"}, {1e12, "TFLOP"}, {1e9, "GFLOP"}, {1e6, "MFLOP"}, {1e3, "kFLOP"}};
  for (const auto& [size, unit] : kUnits) {
    if (value >= size) return fmt::format("{:.3g} {}", value / size, unit);
  }
  return fmt::format("{:.0f} FLOP", value);
}

std::string Shown(double value, std::string_view unit) {
  if (unit == "ns") return Time(value);
  if (unit == "ratio") return fmt::format("{:.2f} %", 100 * value);
  if (unit == "bytes") return FormatBytes(value);
  if (unit == "bytes/s") return FormatBytes(value) + "/s";
  if (unit == "flops") return Flops(value);
  if (unit == "flops/s") return Flops(value) + "/s";
  return FormatCount(value);
}

std::string Shown(const Cell& cell, std::string_view unit, bool unicode) {
  if (const auto* text = std::get_if<std::string>(&cell)) return Printable(*text, unicode);
  if (const auto* number = std::get_if<double>(&cell)) return Shown(*number, unit);
  if (const auto* whole = std::get_if<int64_t>(&cell)) {
    return unit.empty() ? std::to_string(*whole) : Shown(static_cast<double>(*whole), unit);
  }
  return "-";
}

// The units are in the cells: the heading of "sum_ns" is "sum".
std::string Heading(const Column& column) {
  std::string_view name = column.name;
  for (const std::string_view suffix : {"_ns", "_bytes_per_s", "_flops_per_s", "_ratio"}) {
    if (name.ends_with(suffix) && name.size() > suffix.size()) name.remove_suffix(suffix.size());
  }
  std::string heading(name);
  std::replace(heading.begin(), heading.end(), '_', ' ');
  return heading;
}

void Append(std::string* line, const std::string& text, int width, bool left, bool last) {
  const std::string blanks(static_cast<size_t>(std::max(0, width - Columns(text))), ' ');
  *line += left ? text + (last ? "" : blanks) : blanks + text;
  if (!last) *line += "  ";
}

using Cells = std::vector<std::vector<std::string>>;  // the headings first

struct Layout {
  int width;
  bool unicode;
};

std::string Aligned(const Cells& cells, const std::vector<int>& widths, const std::vector<bool>& text_column,
                    const Layout& layout) {
  std::string out;
  for (const auto& row : cells) {
    std::string line = "  ";
    for (size_t c = 0; c < row.size(); ++c) {
      Append(&line, Elide(row[c], widths[c], layout.unicode), widths[c], text_column[c], c + 1 == row.size());
    }
    out += line + "\n";
  }
  return out;
}

// Each row as a line with its name, and below it the other cells, as many per line as fit.
std::string Folded(const Cells& cells, const Layout& layout) {
  constexpr int kIndent = 6;
  const std::string indent(kIndent, ' ');
  const auto name = std::find(cells[0].begin(), cells[0].end(), "name");
  const auto lead = static_cast<size_t>(name == cells[0].end() ? 0 : name - cells[0].begin());
  std::string out;
  for (size_t r = 1; r < cells.size(); ++r) {
    out += "  " + Elide(cells[r][lead], layout.width - 2, layout.unicode);
    int column = layout.width;  // the first of the other cells begins a line
    for (size_t c = 0; c < cells[r].size(); ++c) {
      if (c == lead || cells[r][c].empty()) continue;
      const std::string cell = Elide(cells[0][c] + " " + cells[r][c], layout.width - kIndent, layout.unicode);
      const bool fits = column + 3 + Columns(cell) <= layout.width;
      out += (fits ? "   " : "\n" + indent) + cell;
      column = (fits ? column + 3 : kIndent) + Columns(cell);
    }
    out += "\n";
  }
  return out;
}

std::string Quoted(const std::string& text) {
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string Plain(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return Quoted(Printable(*text, true));
  if (const auto* whole = std::get_if<int64_t>(&cell)) return std::to_string(*whole);
  if (const auto* number = std::get_if<double>(&cell)) return fmt::format("{}", *number);
  return "";
}

}  // namespace

void Table::Note(const std::string& text) {
  if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(text);
}

std::string ToText(const Table& table, size_t most_rows, int width, bool unicode) {
  const size_t columns = table.columns.size();
  const size_t rows = std::min(most_rows, table.rows.size());
  Cells cells(rows + 1);
  std::vector<int> widths(columns);
  std::vector<bool> text_column(columns);
  for (size_t c = 0; c < columns; ++c) cells[0].push_back(Heading(table.columns[c]));
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) {
      cells[r + 1].push_back(Shown(table.rows[r][c], table.columns[c].unit, unicode));
      if (std::holds_alternative<std::string>(table.rows[r][c])) text_column[c] = true;
    }
  }
  int total = 2;
  for (size_t c = 0; c < columns; ++c) {
    for (const auto& row : cells) widths[c] = std::max(widths[c], Columns(row[c]));
    total += widths[c] + 2;
  }
  // The widest texts give way.
  for (size_t c = columns; c-- > 0 && total > width;) {
    if (!text_column[c] || widths[c] <= kMinNameWidth) continue;
    const int less = std::min(total - width, widths[c] - kMinNameWidth);
    widths[c] -= less;
    total -= less;
  }
  const Layout layout{width, unicode};
  std::string out = total - 2 <= width ? Aligned(cells, widths, text_column, layout) : Folded(cells, layout);
  if (table.rows.empty()) out += "  (nothing of the kind in the trace)\n";
  if (rows < table.rows.size()) {
    out += fmt::format("  and {} more rows: --csv FILE has all\n",
                       FormatCount(static_cast<double>(table.rows.size() - rows)));
  }
  for (const std::string& note : table.notes) {
    std::string indent = "  ";
    for (const std::string& line : Wrap("note: " + Printable(note, unicode), width - 4)) {
      out += std::exchange(indent, "    ") + line + "\n";
    }
  }
  return out;
}

std::string CsvHeader(const std::vector<Column>& columns) {
  std::string out;
  for (const Column& column : columns) out += (out.empty() ? "" : ",") + std::string(column.name);
  return out + "\r\n";
}

std::string ToCsv(const Table& table) {
  std::string out = CsvHeader(table.columns);
  for (const auto& row : table.rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      if (c > 0) out += ',';
      out += Plain(row[c]);
    }
    out += "\r\n";
  }
  return out;
}

nlohmann::ordered_json ToJson(const Table& table) {
  nlohmann::ordered_json json = {{"columns", nlohmann::ordered_json::array()},
                                 {"rows", nlohmann::ordered_json::array()},
                                 {"notes", table.notes}};
  for (const Column& column : table.columns)
    json["columns"].push_back({{"name", column.name}, {"unit", column.unit}});
  for (const auto& row : table.rows) {
    nlohmann::ordered_json cells = nlohmann::ordered_json::array();
    for (const Cell& cell : row) {
      std::visit(
          [&](const auto& value) {
            if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
              cells.push_back(nullptr);
            } else {
              cells.push_back(value);
            }
          },
          cell);
    }
    json["rows"].push_back(std::move(cells));
  }
  return json;
}

}  // namespace fullbore::analyze
