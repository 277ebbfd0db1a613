// An alert in words and as JSON (docs/alerts.md): what is logged, sent and kept.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "record/recording.h"
#include "watch/alert/alert.h"
#include "watch/alert/rule.h"

namespace fullbore::watch {

// Where an alert comes from.
struct Origin {
  std::string run, stage, host, run_file;
  int64_t wall_offset_ns = 0;
};

// With the stage's name.
Origin OriginOf(const record::Recording& recording, int64_t stage);

// "fullbore.alert/1"
nlohmann::ordered_json ToJson(const Alert& alert, const Origin& origin, const std::optional<Price>& price);
// What a run file keeps besides the columns that it has, and back.
std::string DetailsOf(const Alert& alert);
void ReadDetails(const std::string& details, Alert& alert);

// "alert 'waits for data' for 4 min 10 s: Training waits ...; DataLoader(num_workers=4)". One line.
std::string InWords(const Alert& alert, const std::optional<Price>& price);
// "12 min lost, 6.40 USD"; empty if unknown.
std::string LossInWords(const Alert& alert, const std::optional<Price>& price);

}  // namespace fullbore::watch
