// What a fleet's database says of many runs together: by SQL, so that a million of them are never here at once.
#pragma once

#include "base/result.h"
#include "fleet/selection.h"
#include "fleet/sql/sql.h"
#include "fleet/sums.h"

namespace fullbore::fleet {

// To be called within Connection::AtOneMoment: it asks several times.
Result<void> ReadSums(const Selection& selection, sql::Connection& connection, Sums& sums);

}  // namespace fullbore::fleet
