// Questions to a search, and what its answers chose.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "tune/search/search.h"

namespace fullbore::tune {

inline Question About(std::set<std::string> knobs) {
  Question question;
  question.knobs = std::move(knobs);
  return question;
}

inline int64_t ValueIn(const Trial& trial, const char* name, int64_t otherwise) {
  const auto at = trial.settings.find(name);
  return at == trial.settings.end() ? otherwise : at->second.get<int64_t>();
}

inline int64_t Chosen(const Answer& answer, const char* name, int64_t otherwise) {
  return ValueIn(*answer.recommended, name, otherwise);
}

}  // namespace fullbore::tune
