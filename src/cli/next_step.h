// What a person would type next, for the `next_step` of every JSON result: derived from its verdict, in this one place.
// CMD stands for the training command where the result does not know it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace fullbore::cli {

// By its schema ("fullbore.report/1"); empty for one that leads nowhere.
std::string NextStepOf(const nlohmann::ordered_json& result);

// Adds it to a result, or to each in a list of them.
nlohmann::ordered_json WithNextStep(nlohmann::ordered_json result);

}  // namespace fullbore::cli
