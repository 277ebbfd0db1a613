// Alerts of a run as a table on standard output, as `fullbore alerts` and `fullbore alerts test` print them.
#pragma once

#include <optional>
#include <vector>

#include "watch/alert/alert.h"
#include "watch/alert/alert_json.h"
#include "watch/alert/rule.h"

namespace fullbore::cli {

void PrintAlerts(const std::vector<watch::Alert>& alerts, const watch::Origin& origin,
                 const std::optional<watch::Price>& price);

}  // namespace fullbore::cli
