// Cells of tables in CSV.
#pragma once

#include <string>
#include <string_view>

namespace fullbore {

// A cell that spreadsheets may open: quoted where it must be, never a formula, and without control characters.
std::string CsvCell(std::string_view text);

}  // namespace fullbore
