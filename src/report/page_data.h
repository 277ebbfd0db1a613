// What the page draws, as JSON: the report, and the recording thinned out for charts. It is a matter between
// this folder and web/report alone and may change with either; what others read is ToJson.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"

namespace fullbore::report {

nlohmann::ordered_json PageData(const diagnose::Diagnosis& diagnosis, const record::Recording& recording);

std::string PageTitle(const diagnose::Diagnosis& diagnosis);

}  // namespace fullbore::report
