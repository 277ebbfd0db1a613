// What `tune` says in the end, for programs: the object of docs/tune.schema.json.
#pragma once

#include <nlohmann/json.hpp>

#include "tune/answer/advice.h"

namespace fullbore::tune {

nlohmann::ordered_json AnswerJson(const Answer& answer, const AnswerContext& context);

}  // namespace fullbore::tune
