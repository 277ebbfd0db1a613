// Settings of a training, named as PyTorch names them ({"num_workers": 4, "pin_memory": true}), and how they get into a
// command: in place of {name} if the command has that, otherwise through the hook.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fullbore::tune {

// By name. Values are JSON numbers, booleans and strings.
using Settings = std::map<std::string, nlohmann::json>;

// "num_workers=4": a number, true or false, else a text.
Result<std::pair<std::string, nlohmann::json>> ParseSetting(std::string_view text);
// "num_workers=0,2,4": the values to choose from, the first of them first.
Result<std::pair<std::string, std::vector<nlohmann::json>>> ParseValues(std::string_view text);

std::string ToText(const nlohmann::json& value);  // "4", "true", "bf16"
std::string ToText(const Settings& settings);     // "num_workers=4 pin_memory=true"; "as it is" where empty
nlohmann::ordered_json ToJson(const Settings& settings);

struct Substituted {
  std::vector<std::string> command;
  Settings for_hook;  // those without a place in the command
};
Substituted Substitute(const std::vector<std::string>& command, const Settings& settings);

// Whether the command contains {name}.
bool HasPlaceholder(const std::vector<std::string>& command, const std::string& name);

}  // namespace fullbore::tune
