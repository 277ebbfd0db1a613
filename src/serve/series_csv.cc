#include "serve/series_csv.h"

#include <fmt/format.h>

#include <string_view>

#include "base/printable.h"
#include "record/metrics.h"
#include "report/thin.h"

namespace fullbore::serve {

namespace {

constexpr std::string_view kColumns = "stage,series,unit,t_s,value\n";
constexpr size_t kMostBytesOfAReading = 41;  // "-2305843009.214,-2.2250738585072014e-308\n"

// A cell of a table that spreadsheets may open: quoted, and never a formula.
std::string CsvCell(const std::string& text) {
  std::string cell = Printable(text, true);
  if (!cell.empty() && std::string_view("=+-@").find(cell[0]) != std::string_view::npos) cell = "'" + cell;
  if (cell.find_first_of(",\"") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string SeriesCsv(const record::Recording& recording, size_t max_bytes) {
  size_t count = 0;
  for (const record::Stage& stage : recording.stages) count += stage.series.size();
  std::string csv(kColumns);
  for (const record::Stage& stage : recording.stages) {
    for (const record::Series& series : stage.series) {
      const std::string head = CsvCell(stage.name) + "," + CsvCell(record::LabelledName(series.key)) + "," +
                               CsvCell(series.key.unit) + ",";
      const size_t most = max_bytes / count / (head.size() + kMostBytesOfAReading);
      if (most < 2) continue;  // no recorder gives a series such a name
      for (const record::Reading& reading : report::Thin(series.readings, most / 2)) {
        const double seconds = static_cast<double>(reading.t_ns - stage.begin_ns) / 1e9;
        csv += head + fmt::format("{:.3f},{}\n", seconds, reading.value);
      }
    }
  }
  return csv;
}

}  // namespace fullbore::serve
