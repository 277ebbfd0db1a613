// What the page draws, as JSON: the report, and the recording thinned out for charts. Private to this folder
// and web/report, and may change with either; the format for others is ToJson.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"

namespace fullbore::report {

nlohmann::ordered_json PageData(const diagnose::Diagnosis& diagnosis, const record::Recording& recording);

nlohmann::ordered_json PaletteData();

std::string PageTitle(const diagnose::Diagnosis& diagnosis);

}  // namespace fullbore::report
