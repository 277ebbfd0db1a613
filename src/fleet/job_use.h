// What the runs of one job used of what it asked for, together.
#pragma once

#include <vector>

#include "fleet/account.h"

namespace fullbore::fleet {

// As of the run that lasted longest, with what runs side by side used: steps of one job share what it was given. A run
// that saw the processes of others within it counts by itself, as what those used is part of its own use. What one of them
// does not know of itself is not known of all.
Use UseOfAll(const std::vector<RunAccount>& runs);

}  // namespace fullbore::fleet
