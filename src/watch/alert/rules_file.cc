#include "watch/alert/rules_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/clock.h"
#include "base/nearest.h"
#include "base/secrets.h"
#include "base/small_file.h"
#include "base/text.h"
#include "base/toml_table.h"
#include "explain/diagnose/judge/judge.h"
#include "record/metrics.h"

namespace fullbore::watch {

namespace {

constexpr size_t kMostRules = 200, kLongestName = 100;
constexpr int64_t kUsualForNs = 60 * kNsPerSecond;

Condition ReadFinding(TomlTable& table) {
  std::vector<std::string> ids;
  for (const diagnose::FindingRow& row : diagnose::AllFindings()) {
    if (row.id != "healthy") ids.emplace_back(row.id);
  }
  const std::string id = table.OneOf("finding", ids);
  return FindingShare{id, table.Number("above", std::nullopt, 0, 1, "a share of the step")};
}

// "disk_read{device=vda}", as reports name a series.
SeriesLevel ReadSeriesName(TomlTable& table) {
  const std::string text = table.Text("series");
  SeriesLevel level;
  const size_t brace = text.find('{');
  level.name = text.substr(0, brace);
  if (brace != std::string::npos) {
    std::string_view labels = std::string_view(text).substr(brace + 1);
    const bool closed = labels.ends_with('}');
    if (closed) labels.remove_suffix(1);
    for (const std::string_view part : Split(labels, ',')) {
      const std::string_view label = Trim(part);
      const size_t equals = label.find('=');
      if (!closed || equals == 0 || equals == std::string_view::npos) {
        table.RefuseKey(
            "series", fmt::format("series = \"{}\" has labels that are not of the form {{key=value}}", text),
            "for instance series = \"disk_busy{device=nvme0n1}\"");
        return level;
      }
      level.labels[std::string(label.substr(0, equals))] = std::string(label.substr(equals + 1));
    }
  }
  std::vector<std::string> names;
  for (const record::MetricInfo& info : record::AllMetrics()) names.emplace_back(info.name);
  if (std::ranges::find(names, level.name) == names.end()) {
    const auto meant = Nearest(level.name, names);
    table.RefuseKey("series", fmt::format("no series is named \"{}\"", level.name),
                    meant ? fmt::format("did you mean \"{}\"?", *meant) : "docs/metrics.md lists them");
  }
  return level;
}

Condition ReadSeries(TomlTable& table) {
  SeriesLevel level = ReadSeriesName(table);
  if (table.Has("above") == table.Has("below")) {
    table.RefuseKey("series", "a series needs above or below, and only one of them",
                    "for instance below = 0.2");
    return level;
  }
  level.side = table.Has("above") ? Side::kAbove : Side::kBelow;
  level.level = table.Number(table.Has("above") ? "above" : "below", std::nullopt, -1e18, 1e18, "a level");
  return level;
}

Condition ReadThroughput(TomlTable& table) {
  table.OneOf("throughput", {"drop"});
  return ThroughputDrop{table.Number("above", 0.15, 0, 1, "a ratio")};
}

Condition ReadSteps(TomlTable& table) {
  table.OneOf("steps", {"none"});
  return NoSteps{table.Number("above", 10, 1, 1e6, "a multiple of the usual pause")};
}

Condition ReadDevice(TomlTable& table) {
  const std::string what = table.OneOf("device", {"idle", "lost", "throttled"});
  if (what == "idle") return IdleDevice{table.Number("below", 0.02, 0, 1, "a utilisation")};
  if (what == "lost") return LostDevice{};
  return ThrottledDevice{table.Number("above", 0.2, 0, 1, "a share of the time")};
}

Condition ReadMemory(TomlTable& table) {
  table.OneOf("memory", {"ends"});
  return MemoryEnds{table.Time("within", 1800 * kNsPerSecond)};
}

Condition ReadDisk(TomlTable& table) {
  table.OneOf("disk", {"full"});
  return DiskFills{table.Time("within", 1800 * kNsPerSecond),
                   table.Number("above", 0.98, 0, 1, "a share of the disk")};
}

Condition ReadRun(TomlTable& table) {
  table.OneOf("run", {"failed"});
  return RunFailed{};
}

struct Kind {
  const char* key;
  Condition (*read)(TomlTable& table);
};
constexpr Kind kKinds[] = {{"finding", ReadFinding}, {"series", ReadSeries}, {"throughput", ReadThroughput},
                           {"steps", ReadSteps},     {"device", ReadDevice}, {"memory", ReadMemory},
                           {"disk", ReadDisk},       {"run", ReadRun}};

struct UrlKind {
  Target::Kind kind;
  std::string_view name;
};
constexpr UrlKind kUrlKinds[] = {{Target::Kind::kWebhook, "webhook"},
                                 {Target::Kind::kSlack, "slack"},
                                 {Target::Kind::kTeams, "teams"},
                                 {Target::Kind::kDiscord, "discord"},
                                 {Target::Kind::kAlertmanager, "alertmanager"}};

std::optional<Target> TargetOf(const std::string& text) {
  if (text == "log") return Target{};
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const std::string kind = text.substr(0, colon), place = text.substr(colon + 1);
  const bool url = place.starts_with("http://") || place.starts_with("https://");
  const bool host = url && place.find_first_not_of('/', place.find("//")) != std::string::npos;
  if (kind == "command" && place.starts_with('/')) return Target{Target::Kind::kCommand, place};
  const auto* const known = std::ranges::find(kUrlKinds, kind, &UrlKind::name);
  return host && known != std::end(kUrlKinds) ? std::optional(Target{known->kind, place}) : std::nullopt;
}

// As much of a target as is no secret, however its kind is spelt: the path of a webhook is its password.
std::string BeginOf(const std::string& target) { return target.substr(0, target.find_first_of(":/")); }

std::vector<Target> ReadNotify(TomlTable& table) {
  const toml::node* node = table.Get("notify");
  if (!node) return {Target{}};
  constexpr char kHint[] =
      "for instance notify = [\"log\", \"command:/usr/local/bin/page\", \"slack:https://hooks.slack.com/...\", "
      "\"alertmanager:http://127.0.0.1:9093\"]";
  std::vector<Target> targets;
  const toml::array* list = node->as_array();
  if (!list) {
    table.RefuseKey("notify", "notify is not a list", kHint);
    return targets;
  }
  for (const toml::node& each : *list) {
    const auto text = each.value_exact<std::string>();
    const auto target = text ? TargetOf(*text) : std::nullopt;
    if (!target) {
      table.Refuse(
          each.source(),
          text ? fmt::format(
                     "notify \"{}...\" is neither log, command:/PATH, webhook:URL, slack:URL, teams:URL, "
                     "discord:URL nor alertmanager:URL",
                     BeginOf(*text))
               : std::string("notify contains something that is not text"),
          kHint);
      return targets;
    }
    if (std::ranges::find(targets, *target) == targets.end()) targets.push_back(*target);
  }
  return targets;
}

const Kind* KindOf(TomlTable& table) {
  const Kind* found = nullptr;
  std::vector<std::string> keys;
  for (const Kind& kind : kKinds) {
    keys.emplace_back(kind.key);
    if (!table.Has(kind.key)) continue;
    if (found) {
      table.RefuseKey(kind.key, fmt::format("it has both {} and {}", found->key, kind.key),
                      "one alert looks at one thing");
      return nullptr;
    }
    found = &kind;
  }
  if (!found)
    table.Refuse("it does not say what to look at",
                 "one of " + TomlTable::Listed(keys) + ", as in finding = \"input-bound\"");
  return found;
}

Rule ReadRule(const toml::table& from, const std::string& path, std::optional<Error>& error) {
  Rule rule;
  TomlTable unnamed(from, "", path, error);
  rule.name = unnamed.Text("name");
  if (rule.name.empty() || rule.name.size() > kLongestName)
    unnamed.RefuseKey("name", fmt::format("a name has 1 to {} bytes", kLongestName), "");
  TomlTable table(from, fmt::format("alert '{}'", rule.name), path, error);
  (void)table.Get("name");
  const bool was_refused = error.has_value();
  const Kind* kind = KindOf(table);
  if (!kind) {
    const auto has = [&table](const Kind& each) { return table.Has(each.key); };
    if (!was_refused && std::ranges::none_of(kKinds, has)) {  // a misspelt key says more than a missing one
      for (const Kind& each : kKinds) (void)table.Get(each.key);
      for (const char* key : {"for", "notify", "above", "below", "within"}) (void)table.Get(key);
      std::optional<Error> missing = std::exchange(error, std::nullopt);
      table.RefuseOthers();
      if (!error) error = std::move(missing);
    }
    return rule;
  }
  rule.condition = kind->read(table);
  const bool at_once =
      std::holds_alternative<LostDevice>(rule.condition) || std::holds_alternative<RunFailed>(rule.condition);
  rule.for_ns = table.Time("for", at_once ? 0 : kUsualForNs);
  rule.notify = ReadNotify(table);
  table.RefuseOthers();
  return rule;
}

std::optional<Price> ReadPrice(TomlTable& root, const std::string& path, std::optional<Error>& error) {
  const toml::node* node = root.Get("price");
  if (!node) return std::nullopt;
  const toml::table* from = node->as_table();
  if (!from) {
    root.RefuseKey("price", "price is not a table", "[price], then per_hour = 32.77");
    return std::nullopt;
  }
  TomlTable table(*from, "price", path, error);
  Price price{table.Number("per_hour", std::nullopt, 0, 1e9, "a price"), "USD"};
  if (table.Get("currency")) price.currency = table.Text("currency");
  table.RefuseOthers();
  return price;
}

}  // namespace

std::string Shown(const Target& target) {
  if (target.kind == Target::Kind::kLog) return "log";
  if (target.kind == Target::Kind::kCommand) return "command:" + target.place;
  const std::string kind(std::ranges::find(kUrlKinds, target.kind, &UrlKind::kind)->name);
  const std::string masked = MaskUrl(target.place);
  if (target.kind == Target::Kind::kAlertmanager) return kind + ":" + masked;
  const size_t host = masked.find("//") + 2, path = masked.find_first_of("/?#", host);
  return kind + ":" + masked.substr(0, path) + (path == std::string::npos ? "" : "/" + std::string(kMask));
}

Result<RuleSet> ParseRules(std::string_view text, const std::string& path) {
  const auto parsed = ParseToml(
      text, path, "docs/alerts.md describes the file; `fullbore alerts --defaults` prints one to start from");
  if (!parsed) return parsed.error();
  RuleSet set;
  std::optional<Error> error;
  TomlTable root(*parsed, "", path, error);
  set.price = ReadPrice(root, path, error);
  std::set<std::string> names;
  for (const toml::table* from : TomlTables(root, "alert", kMostRules)) {
    if (error) break;
    set.rules.push_back(ReadRule(*from, path, error));
    if (!names.insert(set.rules.back().name).second)
      root.Refuse(from->source(), fmt::format("there are two alerts '{}'", set.rules.back().name),
                  "the history tells them apart by name");
  }
  root.RefuseOthers();
  if (!error && set.rules.empty())
    root.Refuse("it contains no alerts", "each begins with [[alert]]; see `fullbore alerts --defaults`");
  if (error) return *error;
  return set;
}

Result<RuleSet> ReadRules(const std::string& path) {
  const auto text = ReadSmallFile(path);
  if (!text) return text.error();
  return ParseRules(*text, path);
}

}  // namespace fullbore::watch
