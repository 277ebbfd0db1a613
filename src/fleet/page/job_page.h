// A job as one HTML file: the waterfall from paid time to useful work, each bar with the runs that it comes from; the runs
// over time; what was asked for and used. As the report's page, it needs no network, and texts reach it only as text nodes.
#pragma once

#include <string>

#include "fleet/job.h"

namespace fullbore::fleet {

std::string ToHtml(const Job& job);

}  // namespace fullbore::fleet
