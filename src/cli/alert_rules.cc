#include "cli/alert_rules.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "watch/alert/rules_file.h"

namespace fullbore::cli {

Result<watch::RuleSet> RulesNamed(const std::string& file) {
  auto rules = file == "default" ? watch::ParseRules(watch::kDefaultRules, "the built-in rules")
                                 : watch::ReadRules(file);
  if (!rules) return rules;
  for (const watch::Rule& rule : rules->rules) {
    for (const watch::Target& target : rule.notify) {
      if (target.kind != watch::Target::Kind::kCommand || access(target.place.c_str(), X_OK) == 0) continue;
      Error error =
          ErrnoError(fmt::format("{}: alert '{}': cannot run '{}'", file, rule.name, target.place), errno);
      error.hint = "a command is the path of a program, without arguments; put those into a script";
      return error;
    }
  }
  return rules;
}

}  // namespace fullbore::cli
