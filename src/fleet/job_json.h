#pragma once

#include <nlohmann/json.hpp>

#include "fleet/job.h"

namespace fullbore::fleet {

nlohmann::ordered_json ToJson(const Job& job);  // docs/fleet-job.schema.json

}  // namespace fullbore::fleet
