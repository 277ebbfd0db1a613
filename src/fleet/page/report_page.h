// A report on many runs as one HTML file; and the letter to one person, with nothing about others. As the report on one
// run, it needs no network, and texts reach it only as text nodes.
#pragma once

#include <string>

#include "fleet/report.h"

namespace fullbore::fleet {

std::string ToHtml(const Report& report, const ReportFor& whom);

}  // namespace fullbore::fleet
