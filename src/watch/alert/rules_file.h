// Reads rules from TOML (docs/alerts.md).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "watch/alert/rule.h"

namespace fullbore::watch {

// Errors name `path` and the line, what is wrong and what would be right; the first one only.
Result<RuleSet> ParseRules(std::string_view text, const std::string& path);
Result<RuleSet> ReadRules(const std::string& path);

// The built-in rules, those of `--rules default`, as a file to start from.
extern const std::string_view kDefaultRules;

}  // namespace fullbore::watch
