// What `tune` says in the end: the table and the recommendation for people, the object of docs/tune.schema.json for
// programs.
#pragma once

#include <nlohmann/json.hpp>

#include "tune/answer/advice.h"

namespace fullbore::cli {

void PrintAnswer(const tune::Answer& answer, const tune::AnswerContext& context);
nlohmann::ordered_json AnswerJson(const tune::Answer& answer, const tune::AnswerContext& context);

}  // namespace fullbore::cli
