#include "fleet/exemptions.h"

#include <fmt/format.h>

#include "base/small_file.h"
#include "base/toml_table.h"

namespace fullbore::fleet {

namespace {

constexpr size_t kMostRules = 100;
constexpr size_t kLongestCommand =
    40;  // SQLite refuses patterns of over 50 bytes in a file that it was not made for

Exemption ReadRule(const toml::table& from, const std::string& path, std::optional<Error>& error) {
  TomlTable table(from, "exempt", path, error);
  Exemption rule{table.TextOr("user", ""),   table.TextOr("account", ""), table.TextOr("partition", ""),
                 table.TextOr("device", ""), table.TextOr("command", ""), table.Text("why")};
  if (rule.command.size() > kLongestCommand)
    table.RefuseKey("command", fmt::format("command has more than {} bytes", kLongestCommand),
                    "a part of the command suffices");
  if (rule.user.empty() && rule.account.empty() && rule.partition.empty() && rule.device.empty() &&
      rule.command.empty())
    table.Refuse("it applies to everything", "name a user, account, partition, device or command");
  if (rule.why.empty()) table.RefuseKey("why", "why is empty", "reports show it");
  table.RefuseOthers();
  return rule;
}

}  // namespace

Result<std::vector<Exemption>> ParseExemptions(std::string_view text, const std::string& path) {
  const auto parsed = ParseToml(text, path, "docs/fleet.md describes the file");
  if (!parsed) return parsed.error();
  std::optional<Error> error;
  TomlTable root(*parsed, "", path, error);
  std::vector<Exemption> rules;
  for (const toml::table* from : TomlTables(root, "exempt", kMostRules))
    rules.push_back(ReadRule(*from, path, error));
  root.RefuseOthers();
  if (error) return *error;
  return rules;
}

Result<std::vector<Exemption>> ReadExemptions(const std::string& path) {
  const auto text = ReadSmallFile(path);
  if (!text) return text.error();
  return ParseExemptions(*text, path);
}

}  // namespace fullbore::fleet
