// The readings of a run as a table: a line each, as databases and data frames like it.
#pragma once

#include <cstddef>
#include <string>

#include "record/recording.h"

namespace fullbore::serve {

// Half of what a server keeps for all who have not taken their answer yet (Limits::unsent_bytes).
inline constexpr size_t kMaxCsvBytes = 32 << 20;

// Below the names of the columns no more than `max_bytes`, of which each series gets an equal part. Where a series has
// more readings than fit, those left are the lowest and the highest of equal stretches of time: a spike stays.
std::string SeriesCsv(const record::Recording& recording, size_t max_bytes = kMaxCsvBytes);

}  // namespace fullbore::serve
