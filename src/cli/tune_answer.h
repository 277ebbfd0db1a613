// What `tune` says in the end: the table and the recommendation for people, the object of docs/tune.schema.json for
// programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tune/search.h"

namespace fullbore::cli {

struct TuneContext {
  std::vector<std::string> command;  // with placeholders
  tune::Known known;
  std::string patch;  // a unified diff; may be empty
  std::optional<double> price_per_hour;
  std::vector<std::string> held;  // knobs that were not turned because they change what is learned
  std::string resume;             // the command that goes on, where it was interrupted; may be empty
};

void PrintAnswer(const tune::Answer& answer, const TuneContext& context);
nlohmann::ordered_json AnswerJson(const tune::Answer& answer, const TuneContext& context);

// What the settings may change in the results, a sentence a knob; empty if nothing but the time.
std::vector<std::string> ChangesOfResults(const tune::Settings& settings);

}  // namespace fullbore::cli
