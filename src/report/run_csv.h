// A run as tables: a line for each reading, or for each of its steps, as databases and data frames like it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "record/recording.h"

namespace fullbore::report {

// Half of what a server keeps for all who have not taken their answer yet (Limits::unsent_bytes).
inline constexpr size_t kMaxCsvBytes = 32 << 20;

inline constexpr std::string_view kSeriesColumns = "stage,series,unit,t_s,value\n";

// Below the names of the columns no more than `max_bytes`, of which each series gets an equal part. Where a series has
// more readings than fit, those left are the lowest and the highest of equal stretches of time: a spike stays.
std::string SeriesCsv(const record::Recording& recording, size_t max_bytes = kMaxCsvBytes);

// A line for each stretch of about a second (`kind` window: all steps are in one), then one for each step that was kept
// by itself (`kind` step). Times are seconds, from the stage's begin or of a step on average; the shares are ratios that
// sum to 1; samples are left empty where nobody counted them.
std::string StepsCsv(const record::Recording& recording);
std::string StepsColumns();

}  // namespace fullbore::report
