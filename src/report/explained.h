// A recording with what is said of each of its stages: what `explain` prints, and a page shows.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"

namespace fullbore::report {

struct Explained {
  record::Recording recording;
  std::vector<diagnose::Diagnosis> stages;  // at least one
  size_t judged = 0;                        // of them

  const diagnose::Diagnosis& verdict() const { return stages[judged]; }
};

// The report of the judged stage; with several stages it carries the others under "stages".
nlohmann::ordered_json ToJson(const Explained& explained);

}  // namespace fullbore::report
