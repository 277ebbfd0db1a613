#include "base/csv.h"

#include "base/printable.h"

namespace fullbore {

std::string CsvCell(std::string_view text) {
  std::string cell = Printable(text, true);
  if (!cell.empty() && std::string_view("=+-@").find(cell[0]) != std::string_view::npos) cell = "'" + cell;
  if (cell.find_first_of(",\"") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace fullbore
