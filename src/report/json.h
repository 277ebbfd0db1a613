// A diagnosis as JSON: schema "fullbore.report/1", described by docs/report.schema.json.
//
// Unknown is absent: a member whose value was not recorded is left out, never written as null or 0.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "explain/diagnose/compare.h"
#include "explain/diagnose/diagnosis.h"
#include "explain/fitness/fitness.h"

namespace fullbore::report {

inline constexpr const char* kReportSchema = "fullbore.report/1";

// Ordered, so that members come in the order in which people read them.
nlohmann::ordered_json ToJson(const diagnose::Diagnosis& diagnosis);

// A diagnosis as text, indented, with a newline at the end. Bytes that are not UTF-8 are replaced by U+FFFD.
std::string ToJsonText(const diagnose::Diagnosis& diagnosis);

// What changed between two: schema "fullbore.comparison/1".
nlohmann::ordered_json ToJson(const diagnose::Diagnosis& before, const diagnose::Diagnosis& after,
                              const diagnose::Comparison& comparison);

// Its conditions, as an array.
nlohmann::ordered_json ToJson(const fitness::Fitness& fitness);

std::string_view Name(diagnose::Severity severity);  // "info", "warning", "critical"

}  // namespace fullbore::report
