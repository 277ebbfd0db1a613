#include "tune/knob/settings.h"

#include <fmt/format.h>

#include "base/text.h"

namespace fullbore::tune {

namespace {

using nlohmann::json;

json ParseValue(std::string_view text) {
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  if (const auto whole = ParseInt(text)) return *whole;
  if (const auto number = ParseDouble(text)) return *number;
  return std::string(text);
}

// Nothing where the text has no name or no value.
std::optional<std::pair<std::string, std::string_view>> Parts(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) return std::nullopt;
  return {{std::string(Trim(text.substr(0, equals))), Trim(text.substr(equals + 1))}};
}

}  // namespace

Result<std::pair<std::string, json>> ParseSetting(std::string_view text) {
  const auto parts = Parts(text);
  if (!parts) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("--set '{}' is not of the form name=value", text),
                 "for instance --set num_workers=4"};
  }
  return {{parts->first, ParseValue(parts->second)}};
}

Result<std::pair<std::string, std::vector<json>>> ParseValues(std::string_view text) {
  const auto parts = Parts(text);
  if (!parts) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--set '{}' is not of the form name=value,value", text),
                 "for instance --set num_workers=0,2,4"};
  }
  std::vector<json> values;
  for (const std::string_view value : Split(parts->second, ',')) {
    if (!Trim(value).empty()) values.push_back(ParseValue(Trim(value)));
  }
  if (values.empty()) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("--set '{}' has no value to try", text),
                 "for instance --set num_workers=0,2,4"};
  }
  return {{parts->first, std::move(values)}};
}

std::string ToText(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::string ToText(const Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings) text += (text.empty() ? "" : " ") + name + "=" + ToText(value);
  return text.empty() ? "as it is" : text;
}

nlohmann::ordered_json ToJson(const Settings& settings) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, value] : settings) object[name] = value;
  return object;
}

bool HasPlaceholder(const std::vector<std::string>& command, const std::string& name) {
  const std::string placeholder = "{" + name + "}";
  for (const std::string& word : command) {
    if (word.find(placeholder) != std::string::npos) return true;
  }
  return false;
}

Substituted Substitute(const std::vector<std::string>& command, const Settings& settings) {
  Substituted result{command, {}};
  for (const auto& [name, value] : settings) {
    if (!HasPlaceholder(command, name)) {
      result.for_hook[name] = value;
      continue;
    }
    const std::string placeholder = "{" + name + "}", text = ToText(value);
    for (std::string& word : result.command) {
      for (size_t at = 0; (at = word.find(placeholder, at)) != std::string::npos; at += text.size())
        word.replace(at, placeholder.size(), text);
    }
  }
  return result;
}

}  // namespace fullbore::tune
