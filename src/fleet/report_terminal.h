// A report on many runs in the terminal, or the letter to one person.
#pragma once

#include <string>

#include "base/laid_out.h"
#include "fleet/report.h"

namespace fullbore::fleet {

// `since`: how long the report looks back, as it was asked for; empty: on all runs. Onto `out`, which says how wide.
std::string ToText(const Report& report, const ReportFor& whom, const std::string& since, LaidOut out);

}  // namespace fullbore::fleet
