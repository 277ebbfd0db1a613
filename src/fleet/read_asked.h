// What jobs asked for and hardly used, from a fleet's database: part of ReadSums.
#pragma once

#include <vector>

#include "base/result.h"
#include "fleet/selection.h"
#include "fleet/sql/sql.h"
#include "fleet/sums.h"

namespace fullbore::fleet {

// Of a job with several runs what they used together (job_use.h); such a job counts where all of its runs are selected and
// none is exempt.
Result<void> ReadAsked(const Selection& selection, sql::Connection& connection, std::vector<AskedSum>& asked);

}  // namespace fullbore::fleet
