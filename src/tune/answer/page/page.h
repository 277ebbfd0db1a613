// An answer as one HTML file: what to change, curves, predictions beside what was measured, throughput over
// memory, and every trial. As the report's page, it needs no network, and texts reach it only as text nodes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tune/answer/advice.h"

namespace fullbore::tune {

std::string ToHtml(const Answer& answer, const AnswerContext& context);

// What the page draws. Private to this folder and web/tune, and may change with either; the format for others
// is docs/tune.schema.json.
nlohmann::ordered_json PageData(const Answer& answer, const AnswerContext& context);

}  // namespace fullbore::tune
