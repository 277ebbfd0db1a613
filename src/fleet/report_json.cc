#include "fleet/report_json.h"

#include <nlohmann/json.hpp>

namespace fullbore::fleet {

using Json = nlohmann::ordered_json;

namespace {

Json ToJson(const Before& before) {
  Json json = {{"runs", before.runs},
               {"given_ns", before.given_ns},
               {"waste_ns", before.waste_ns},
               {"trends", Json::array()}};
  for (const Trend& trend : before.trends) {
    json["trends"].push_back({{"cause", trend.cause},
                              {"before_ns", trend.before_ns},
                              {"now_ns", trend.now_ns},
                              {"group", trend.group},
                              {"group_before_ns", trend.group_before_ns},
                              {"group_now_ns", trend.group_now_ns}});
  }
  return json;
}

}  // namespace

Json ToJson(const Report& report) {
  Json json = {{"schema", "fullbore.fleet/1"},
               {"runs", report.runs},
               {"users", report.users},
               {"begin_unix_ns", report.begin_unix_ns},
               {"end_unix_ns", report.end_unix_ns},
               {"given_ns", report.given_ns},
               {"parts", Json::array()},
               {"by", Name(report.by)},
               {"groups", Json::array()},
               {"fixes", Json::array()}};
  for (const Part& part : report.parts) {
    Json& one = json["parts"].emplace_back(Json{{"kind", Name(part.kind)}, {"device_ns", part.device_ns}});
    if (!part.cause.empty()) one["cause"] = part.cause;
  }
  for (const Group& group : report.groups) {
    json["groups"].push_back({{"name", group.name},
                              {"runs", group.runs},
                              {"given_ns", group.given_ns},
                              {"work_ns", group.work_ns},
                              {"waste_ns", group.waste_ns},
                              {"not_judged_ns", group.not_judged_ns}});
  }
  for (const Fix& fix : report.fixes) {
    json["fixes"].push_back(
        {{"finding", fix.finding},
         {"cause", fix.cause},
         {"change", fix.change},
         {"title", fix.title},
         {"run", fix.run},
         {"runs", fix.runs},
         {"users", fix.users},
         {"saves_ns", {{"low", fix.low_ns}, {"expected", fix.expected_ns}, {"high", fix.high_ns}}}});
  }
  if (report.before) json["before"] = ToJson(*report.before);
  return json;
}

}  // namespace fullbore::fleet
