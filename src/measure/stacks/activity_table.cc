#include "measure/stacks/activity_table.h"

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "base/text.h"

namespace fullbore::stacks {

using record::Activity;

namespace {

std::string_view WithoutLastWord(std::string_view dotted) {
  const size_t dot = dotted.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : dotted.substr(0, dot);
}

// The value under the longest prefix, of whole words, that the table has.
template <typename Names>
auto Longest(const Names& names, std::string_view dotted) {
  for (; !dotted.empty(); dotted = WithoutLastWord(dotted)) {
    if (const auto found = names.find(dotted); found != names.end()) return found;
  }
  return names.end();
}

// As the line "data_wait: ..." of the file means it: a share, or a part of host_other.
std::optional<Phase> PhaseNamed(std::string_view name) {
  if (const auto share = record::ShareNamed(name)) return Phase{*share};
  if (const auto part = record::HostOtherNamed(name)) return Phase{record::Share::kHostOther, *part};
  return std::nullopt;
}

template <typename Value>
std::optional<Value> Find(const std::map<std::string, Value, std::less<>>& names, std::string_view name) {
  const auto found = names.find(name);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

const ActivityTable& ActivityTable::Get() {
  static const ActivityTable table;
  return table;
}

ActivityTable::ActivityTable() {
  std::string_view section, meaning;
  for (std::string_view line : Split(kActivitiesText, '\n')) {
    if (Trim(line).empty() || line.front() == '#') continue;
    if (line.front() == '[') {
      section = line.substr(1, line.find(']') - 1);
      continue;
    }
    if (line.front() != ' ') {
      const size_t colon = line.find(':');
      meaning = line.substr(0, colon);
      line.remove_prefix(colon + 1);
    }
    for (const std::string_view name : Words(line)) Add(section, meaning, name);
  }
}

void ActivityTable::Add(std::string_view section, std::string_view meaning, std::string_view name) {
  const auto activity = record::ActivityNamed(meaning);
  const auto phase = PhaseNamed(meaning);
  FB_CHECK(activity || phase);  // the table is part of the program
  const std::string key(name);
  if (section == "purposes") purposes_[key] = *activity;
  if (section == "calls") calls_[key] = *activity;
  if (section == "phases") phases_[key] = *phase;
  if (section == "functions") functions_[key] = *phase;
  if (section == "methods")
    phase ? void(method_phases_[key] = *phase) : void(method_activities_[key] = *activity);
  if (section != "waits") return;
  std::string function = key.substr(key.rfind('.') + 1);
  const size_t stars = function.size() - std::max<size_t>(1, function.find_last_not_of('*') + 1);
  function.resize(function.size() - stars);
  // From without, a client's answer to a question is not told from one to an upload.
  const bool receives = stars > 0 && *activity != Activity::kNetwork;
  waits_[std::string(WithoutLastWord(name))][function] = {*activity, receives};
}

Activity ActivityTable::PurposeOf(std::string_view module) const {
  const auto found = Longest(purposes_, module);
  return found == purposes_.end() ? Activity::kUnknown : found->second;
}

// A module's own functions; where it has none, those of a package that are all alike.
std::optional<Wait> ActivityTable::WaitOf(std::string_view module, std::string_view function) const {
  if (const auto own = waits_.find(module); own != waits_.end()) {
    if (const auto wait = Find(own->second, function)) return wait;
    return Find(own->second, "*");
  }
  for (; !module.empty(); module = WithoutLastWord(module)) {
    const auto package = waits_.find(module);
    if (package == waits_.end()) continue;
    if (const auto all = Find(package->second, "*")) return all;
  }
  return std::nullopt;
}

Activity ActivityTable::CallOf(std::string_view dotted) const {
  if (const auto found = Longest(calls_, dotted); found != calls_.end()) return found->second;
  for (dotted = WithoutLastWord(dotted); !dotted.empty(); dotted = WithoutLastWord(dotted)) {
    if (const auto all = Find(calls_, std::string(dotted) + ".*")) return *all;
  }
  return Activity::kUnknown;
}

std::optional<Phase> ActivityTable::PhaseOf(std::string_view module, std::string_view function) const {
  if (module.empty()) return std::nullopt;
  if (const auto exact = Find(phases_, std::string(module) + "." + std::string(function))) return exact;
  for (; !module.empty(); module = WithoutLastWord(module)) {
    if (const auto all = Find(phases_, std::string(module) + ".*")) return all;
  }
  return std::nullopt;
}

std::optional<Phase> ActivityTable::PhaseOfMethod(std::string_view name) const {
  return Find(method_phases_, name);
}

Activity ActivityTable::ActivityOfMethod(std::string_view name) const {
  return Find(method_activities_, name).value_or(Activity::kUnknown);
}

std::optional<Phase> ActivityTable::PhaseOfUserFunction(std::string_view name) const {
  for (const auto& [pattern, phase] : functions_) {
    const bool all = pattern.back() == '*';
    if (all ? name.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1)) : name == pattern)
      return phase;
  }
  return std::nullopt;
}

}  // namespace fullbore::stacks
