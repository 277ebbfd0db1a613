// The step that the page shows piece by piece.
#pragma once

#include <nlohmann/json.hpp>

#include "record/recording.h"

namespace fullbore::report {

// The same step of all ranks on one clock, by column, in nanoseconds from the earliest begin; null where no step was
// recorded in such detail.
nlohmann::ordered_json TimelineData(const record::Stage& stage);

}  // namespace fullbore::report
