// What brings a fleet's database of an earlier version up to date.
#pragma once

#include <functional>

#include "base/result.h"
#include "fleet/account.h"
#include "fleet/sql/sql.h"
#include "fleet/store.h"

namespace fullbore::fleet {

// Version 1 was a file only, had one row a run, and held in a table of its own what had been seen. All is put again, in
// the same transaction.
Result<void> MoveFromVersion1(sql::Connection& connection,
                              const std::function<Result<void>(const RunAccount&, const Stamp&)>& put);

// Version 2 had of what a run asked for only what it hardly used, and nothing of the runs that it saw within it.
Result<void> MoveFromVersion2(sql::Connection& connection);

}  // namespace fullbore::fleet
