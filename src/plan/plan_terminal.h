// A plan in the terminal: what was recorded, rows of speeds and costs, the sentences that matter, what is not told.
#pragma once

#include <string>

#include "base/laid_out.h"
#include "plan/plan.h"

namespace fullbore::plan {

// Onto `out`, which says how wide.
std::string ToText(const Plan& plan, const Request& request, LaidOut out);

std::string MoneyText(double money);  // "0.0042", "12.50", "12,500"

}  // namespace fullbore::plan
