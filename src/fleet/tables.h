// The tables of a fleet's database: docs/fleet.md.
#pragma once

#include <cstdint>
#include <string>

#include "fleet/account.h"
#include "fleet/sql/sql.h"

namespace fullbore::fleet {

inline constexpr int64_t kVersion = 3;

// All of them, for a database without any.
std::string TablesSql();

// The columns of `run` that hold a RunAccount's own fields, in one order everywhere: "id, begin_unix_ns, ...".
const std::string& RunColumns();
std::string RunPlaceholders(size_t first);  // "$4, $5, ..." for the same
void AddRunValues(const RunAccount& account, sql::Values& values);
void TakeRunRow(const sql::Row& row, int first_column, RunAccount& account);

}  // namespace fullbore::fleet
