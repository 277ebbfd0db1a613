#include "fleet/report_json.h"

#include <nlohmann/json.hpp>

namespace fullbore::fleet {

using Json = nlohmann::ordered_json;

namespace {

// A sum beyond 64 bits as the nearest number of sixteen digits.
Json Number(WideNs ns) {
  if (const auto whole = static_cast<int64_t>(ns); whole == ns) return whole;
  return static_cast<double>(ns);
}

Json ToJson(const Before& before) {
  Json json = {{"runs", before.runs},
               {"given_ns", Number(before.given_ns)},
               {"waste_ns", Number(before.waste_ns)},
               {"trends", Json::array()}};
  for (const Trend& trend : before.trends) {
    json["trends"].push_back({{"cause", trend.cause},
                              {"before_ns", Number(trend.before_ns)},
                              {"now_ns", Number(trend.now_ns)},
                              {"group", trend.group},
                              {"group_before_ns", Number(trend.group_before_ns)},
                              {"group_now_ns", Number(trend.group_now_ns)}});
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
               {"given_ns", Number(report.given_ns)},
               {"parts", Json::array()},
               {"by", Name(report.by)},
               {"groups", Json::array()},
               {"fixes", Json::array()},
               {"asked", Json::array()}};
  for (const PartTotal& part : report.parts) {
    Json& one =
        json["parts"].emplace_back(Json{{"kind", Name(part.kind)}, {"device_ns", Number(part.device_ns)}});
    if (!part.cause.empty()) one["cause"] = part.cause;
    if (report.has_prices) one["cost"] = part.cost;
  }
  for (const Group& group : report.groups) {
    json["groups"].push_back({{"name", group.name},
                              {"runs", group.runs},
                              {"given_ns", Number(group.given_ns)},
                              {"work_ns", Number(group.work_ns)},
                              {"waste_ns", Number(group.waste_ns)},
                              {"not_judged_ns", Number(group.not_judged_ns)}});
  }
  for (const Fix& fix : report.fixes) {
    json["fixes"].push_back({{"finding", fix.finding},
                             {"cause", fix.cause},
                             {"change", fix.change},
                             {"title", fix.title},
                             {"run", fix.run},
                             {"runs", fix.runs},
                             {"users", fix.users},
                             {"saves_ns",
                              {{"low", Number(fix.low_ns)},
                               {"expected", Number(fix.expected_ns)},
                               {"high", Number(fix.high_ns)}}}});
    if (report.has_prices) json["fixes"].back()["saves_cost"] = fix.expected_cost;
  }
  for (const OverAskedJobs& each : report.asked) {
    json["asked"].push_back({{"what", each.what},
                             {"jobs", each.jobs},
                             {"runs", each.runs},
                             {"users", each.users},
                             {"given", each.given},
                             {"used", each.used}});
  }
  if (report.has_prices) {
    json["cost"] = report.cost;
    json["currency"] = report.currency;
    json["unpriced"] = report.unpriced;
  }
  if (report.before) json["before"] = ToJson(*report.before);
  return json;
}

}  // namespace fullbore::fleet
