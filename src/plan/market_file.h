// Reads a market from TOML (docs/plan.md).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "plan/market.h"

namespace fullbore::plan {

// Errors name `path` and the line, what is wrong and what would be right; the first one only.
Result<Market> ParseMarket(std::string_view text, const std::string& path);
Result<Market> ReadMarket(const std::string& path);

// A file to start from, with public prices of one day.
extern const std::string_view kPricesExample;

}  // namespace fullbore::plan
