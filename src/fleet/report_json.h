// The JSON form of a report on many runs: docs/fleet.schema.json.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "fleet/report.h"

namespace fullbore::fleet {

nlohmann::ordered_json ToJson(const Report& report);

}  // namespace fullbore::fleet
