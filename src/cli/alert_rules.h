// --rules FILE, wherever it is taken.
#pragma once

#include <string>

#include "base/result.h"
#include "watch/alert/rule.h"

namespace fullbore::cli {

inline constexpr char kRulesHelp[] =
    "Rules of what to be told of, and how (TOML, docs/alerts.md), or the word `default`: those that are "
    "built in";

// The rules of the file; its commands can be run.
Result<watch::RuleSet> RulesNamed(const std::string& file);

}  // namespace fullbore::cli
