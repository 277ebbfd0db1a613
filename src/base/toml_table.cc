#include "base/toml_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/nearest.h"

namespace fullbore {

Result<toml::table> ParseToml(std::string_view text, const std::string& path, const std::string& hint) {
  toml::parse_result parsed = toml::parse(text, path);
  if (parsed) return std::move(parsed).table();
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("{}:{}: {}", path, parsed.error().source().begin.line, parsed.error().description()), hint};
}

void TomlTable::Refuse(const toml::source_region& place, const std::string& what, const std::string& hint) {
  if (error_) return;
  error_ = Error{
      ErrorCode::kInvalidArgument,
      fmt::format("{}:{}: {}{}", path_, place.begin.line, where_.empty() ? "" : where_ + ": ", what), hint};
}

void TomlTable::RefuseKey(const std::string& key, const std::string& what, const std::string& hint) {
  const toml::node* node = table_.get(key);
  Refuse(node ? node->source() : table_.source(), what, hint);
}

std::string TomlTable::Text(const std::string& key) {
  const toml::node* node = Get(key);
  const auto text = node ? node->value_exact<std::string>() : std::nullopt;
  if (!text)
    Refuse(node ? node->source() : table_.source(), key + (node ? " is not a text" : " is missing"),
           "for instance " + key + " = \"...\"");
  return text.value_or("");
}

std::string TomlTable::OneOf(const std::string& key, const std::vector<std::string>& words) {
  const std::string word = Text(key);
  if (std::ranges::find(words, word) != words.end() || error_) return word;
  const auto meant = Nearest(word, words);
  RefuseKey(key, fmt::format("{} = \"{}\" is unknown", key, word),
            meant ? fmt::format("did you mean \"{}\"?", *meant) : "it may be " + Listed(words));
  return word;
}

double TomlTable::Number(const std::string& key, std::optional<double> otherwise, double least, double most,
                         const char* what) {
  const toml::node* node = Get(key);
  if (!node) {
    if (!otherwise)
      Refuse(key + " is missing", fmt::format("for instance {} = {}", key, most == 1 ? "0.25" : "10"));
    return otherwise.value_or(0);
  }
  const auto number = node->value<double>();
  if (!number || !node->is_number() || !std::isfinite(*number)) {
    RefuseKey(key, key + " is not a number",
              fmt::format("for instance {} = {}", key, most == 1 ? "0.25" : "10"));
    return 0;
  }
  if (*number < least || *number > most) {
    RefuseKey(
        key, fmt::format("{} = {} is not {}, from {} to {}", key, *number, what, least, most),
        most == 1 && *number > 1 && *number <= 100 ? fmt::format("{} % is {}", *number, *number / 100) : "");
  }
  return *number;
}

void TomlTable::RefuseOthers() {
  for (const auto& [key, node] : table_) {
    const std::string name(key.str());
    if (known_.contains(name)) continue;
    const std::vector<std::string> names(known_.begin(), known_.end());
    const auto meant = Nearest(name, names);
    Refuse(key.source(), fmt::format("the key '{}' is unknown here", name),
           meant ? fmt::format("did you mean '{}'?", *meant) : "the keys here are " + Listed(names));
  }
}

std::string TomlTable::Listed(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  return list;
}

}  // namespace fullbore
