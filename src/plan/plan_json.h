// The JSON form of a plan: docs/plan.schema.json.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "plan/plan.h"

namespace fullbore::plan {

nlohmann::ordered_json ToJson(const Plan& plan, const Request& request);

}  // namespace fullbore::plan
