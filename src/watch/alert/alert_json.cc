#include "watch/alert/alert_json.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "record/json_text.h"

namespace fullbore::watch {

using Json = nlohmann::ordered_json;

namespace {

Json EvidenceToJson(const std::vector<diagnose::Evidence>& evidence) {
  Json list = Json::array();
  for (const diagnose::Evidence& each : evidence) {
    if (!std::isfinite(each.value)) continue;
    Json one = {{"what", each.what}, {"value", each.value}, {"unit", each.unit}};
    if (!each.series.empty()) one["series"] = each.series;
    list.push_back(std::move(one));
  }
  return list;
}

std::string Replaced(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

Origin OriginOf(const record::Recording& recording, int64_t stage) {
  Origin origin{recording.id, "", "", recording.path, recording.wall_offset_ns};
  if (const auto host = recording.machine.find("hostname"); host != recording.machine.end())
    origin.host = host->second;
  for (const record::Stage& each : recording.stages) {
    if (each.id == stage) origin.stage = each.name;
  }
  return origin;
}

Json ToJson(const Alert& alert, const Origin& origin, const std::optional<Price>& price) {
  const auto unix_ns = [&](int64_t ns) { return ns + origin.wall_offset_ns; };
  Json json = {{"format", "fullbore.alert/1"},
               {"id", fmt::format("{}/{}/{}/{}", origin.run, alert.stage, alert.rule, alert.fired_ns)},
               {"state", alert.resolved_ns    ? "resolved"
                         : alert.fired_ns > 0 ? "firing"
                                              : "pending"},
               {"alert", alert.rule},
               {"run", origin.run},
               {"stage", origin.stage},
               {"host", origin.host},
               {"run_file", origin.run_file},
               {"what", alert.what},
               {"since_unix_ns", unix_ns(alert.since_ns)}};
  if (alert.fired_ns > 0) json["fired_unix_ns"] = unix_ns(alert.fired_ns);
  if (alert.resolved_ns) {
    json["resolved_unix_ns"] = unix_ns(*alert.resolved_ns);
    json["end"] = alert.end;
  }
  json["evidence"] = EvidenceToJson(alert.evidence);
  json["fix"] = alert.fix;
  if (alert.lost_ns) json["lost"]["seconds"] = static_cast<double>(*alert.lost_ns) / 1e9;
  if (alert.lost_money && price) {
    json["lost"]["money"] = *alert.lost_money;
    json["lost"]["currency"] = price->currency;
  }
  return json;
}

std::string DetailsOf(const Alert& alert) {
  Json json = {{"evidence", EvidenceToJson(alert.evidence)}, {"fix", alert.fix}};
  if (!alert.end.empty()) json["end"] = alert.end;
  if (alert.lost_ns) json["lost_ns"] = *alert.lost_ns;
  if (alert.lost_money) json["lost_money"] = *alert.lost_money;
  return Replaced(json);
}

void ReadDetails(const std::string& details, Alert& alert) try {
  const auto json = record::ParseJson(details);
  if (!json.is_object()) return;
  for (const auto& each : json.value("evidence", nlohmann::json::array()))
    alert.evidence.push_back(
        {each.at("what"), each.at("value"), each.at("unit"), "", each.value("series", ""), {}, {}});
  for (const auto& each : json.value("fix", nlohmann::json::array())) alert.fix.push_back(each);
  alert.end = json.value("end", "");
  if (json.contains("lost_ns")) alert.lost_ns = json["lost_ns"].get<int64_t>();
  if (json.contains("lost_money")) alert.lost_money = json["lost_money"].get<double>();
} catch (const nlohmann::json::exception&) {  // somebody else's file: the columns say enough
}

std::string LossInWords(const Alert& alert, const std::optional<Price>& price) {
  if (!alert.lost_ns || *alert.lost_ns <= 0) return "";
  std::string text = FormatDuration(*alert.lost_ns) + " lost";
  if (alert.lost_money && price) text += fmt::format(", {:.2f} {}", *alert.lost_money, price->currency);
  return text;
}

std::string InWords(const Alert& alert, const std::optional<Price>& price) {
  const std::string loss = LossInWords(alert, price);
  const std::string cost = loss.empty() ? "" : fmt::format(" ({})", loss);
  if (alert.resolved_ns) {
    return fmt::format("alert '{}' is over after {}: {}{}", alert.rule,
                       FormatDuration(*alert.resolved_ns - alert.since_ns), alert.end, cost);
  }
  std::string what = alert.what;
  while (what.ends_with('.')) what.pop_back();
  const int64_t held_ns = alert.fired_ns - alert.since_ns;
  return fmt::format("alert '{}'{}: {}{}{}", alert.rule, held_ns > 0 ? " for " + FormatDuration(held_ns) : "",
                     what, cost, alert.fix.empty() ? "" : "; " + alert.fix.front());
}

}  // namespace fullbore::watch
