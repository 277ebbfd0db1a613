#include "base/toml_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/nearest.h"
#include "base/text.h"

namespace fullbore {

namespace {

constexpr int64_t kLongestNs = 7 * 24 * 3600 * kNsPerSecond;

}  // namespace

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

const toml::node* TomlTable::Get(const std::string& key) {
  known_.insert(key);
  return table_.get(key);
}

std::string TomlTable::Text(const std::string& key) {
  const toml::node* node = Get(key);
  const auto text = node ? node->value_exact<std::string>() : std::nullopt;
  if (!text)
    Refuse(node ? node->source() : table_.source(), key + (node ? " is not a text" : " is missing"),
           "for instance " + key + " = \"...\"");
  return text.value_or("");
}

std::string TomlTable::TextOr(const std::string& key, const std::string& otherwise) {
  return Get(key) ? Text(key) : otherwise;
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

int64_t TomlTable::Time(const std::string& key, int64_t otherwise_ns) {
  const toml::node* node = Get(key);
  if (!node) return otherwise_ns;
  const auto text = node->value_exact<std::string>();
  const auto seconds = text ? ParseSeconds(*text) : std::nullopt;
  const double longest = static_cast<double>(kLongestNs) / 1e9;
  if (!seconds || !(*seconds >= 0 && *seconds <= longest)) {
    RefuseKey(key,
              text ? fmt::format("{} = \"{}\" is no time of up to a week", key, *text) : key + " is no time",
              fmt::format("for instance {0} = \"90s\", {0} = \"5m\" or {0} = \"2h\"", key));
    return otherwise_ns;
  }
  return std::llround(*seconds * 1e9);
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

std::vector<const toml::table*> TomlTables(TomlTable& root, const std::string& key, size_t most) {
  std::vector<const toml::table*> tables;
  const toml::node* node = root.Get(key);
  if (!node) return tables;
  const toml::array* list = node->as_array();
  if (!list) {
    root.RefuseKey(key, key + " is not a list", fmt::format("write [[{}]] with two brackets", key));
    return tables;
  }
  for (const toml::node& each : *list) {
    const toml::table* table = each.as_table();
    if (!table || tables.size() >= most) {
      root.Refuse(each.source(),
                  table ? fmt::format("more than {} of [[{}]]", most, key)
                        : fmt::format("an entry of {} is not a table", key),
                  fmt::format("each begins with [[{}]]", key));
      return tables;
    }
    tables.push_back(table);
  }
  return tables;
}

Result<toml::table> ParseToml(std::string_view text, const std::string& path, const std::string& hint) {
  toml::parse_result parsed = toml::parse(text, path);
  if (parsed) return std::move(parsed).table();
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("{}:{}: {}", path, parsed.error().source().begin.line, parsed.error().description()), hint};
}

}  // namespace fullbore
