// A job in the terminal: its waterfall, its runs, what it asked for and used.
#pragma once

#include <string>

#include "fleet/job.h"

namespace fullbore::fleet {

std::string ToText(const Job& job, bool unicode);

}  // namespace fullbore::fleet
