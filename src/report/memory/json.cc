#include "report/memory/json.h"

#include "report/memory/sentences.h"

namespace fullbore::report {

namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const memory::Moment& moment) {
  Json json = {{"allocated", moment.allocated}, {"reserved", moment.reserved}};
  if (moment.time_us) json["time_us"] = *moment.time_us;
  return json;
}

Json ToJson(const memory::CachingAllocator::Cached& cached) {
  return {{"bytes", cached.bytes}, {"pieces", cached.pieces}, {"largest", cached.largest}};
}

Json ToJson(const memory::LineUse& line) {
  return {{"place", line.place}, {"bytes", line.bytes}, {"blocks", line.blocks}};
}

Json ToJson(const memory::RefusedRequest& refused) {
  return {{"moment", ToJson(refused.moment)},
          {"place", refused.place},
          {"asked", refused.asked},
          {"device_free", refused.device_free},
          {"cached", ToJson(refused.cached)}};
}

Json ToJson(const memory::Replayed& replayed) {
  return {{"peak_allocated", replayed.peak_allocated},
          {"peak_reserved", replayed.peak_reserved},
          {"retries", replayed.retries},
          {"driver_calls", replayed.driver_calls}};
}

Json ToJson(const memory::DeviceAccount& account) {
  Json json = {{"device", account.device},           {"says", MemorySentences(account)},
               {"limits", MemoryLimits(account)},    {"events", account.events},
               {"complete", account.complete},       {"peak_reserved", account.peak_reserved},
               {"retries", account.retries},         {"end", ToJson(account.end)},
               {"peak", ToJson(account.peak.moment)}};
  if (account.span_us) json["span_us"] = *account.span_us;
  if (account.capacity) json["capacity"] = *account.capacity;
  json["peak"]["cached"] = ToJson(account.peak.cached);
  json["peak"]["grows_with_the_batch"] = account.scaled_bytes;
  for (const char* list : {"refused", "growing", "what_if"}) json[list] = Json::array();
  json["peak"]["lines"] = Json::array();
  for (const auto& each : account.peak.lines) json["peak"]["lines"].push_back(ToJson(each));
  for (const auto& each : account.refused) json["refused"].push_back(ToJson(each));
  for (const auto& each : account.growing)
    json["growing"].push_back({{"place", each.place}, {"bytes", each.bytes}, {"blocks", each.blocks}});
  if (account.as_recorded) {
    json["as_recorded"] = ToJson(*account.as_recorded);
    json["as_recorded"]["off"] = account.as_recorded->off;
  }
  for (const auto& each : account.what_if) {
    json["what_if"].push_back({{"change", each.name}});
    json["what_if"].back().update(ToJson(each.replayed));
    if (account.capacity) json["what_if"].back()["fits"] = !each.replayed.failed;
    if (each.reserved_at_refusal) json["what_if"].back()["reserved_at_refusal"] = *each.reserved_at_refusal;
  }
  return json;
}

}  // namespace

Json MemoryToJson(std::span<const memory::DeviceAccount> accounts, const std::string& name) {
  Json json = {{"schema", "fullbore.memory/1"}, {"file", name}, {"devices", Json::array()}};
  for (const memory::DeviceAccount& account : accounts) json["devices"].push_back(ToJson(account));
  return json;
}

}  // namespace fullbore::report
