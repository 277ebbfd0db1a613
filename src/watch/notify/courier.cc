#include "watch/notify/courier.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "base/clock.h"
#include "base/text.h"
#include "watch/alert/figure.h"
#include "watch/notify/delivery.h"

namespace fullbore::watch {

using Json = nlohmann::ordered_json;

namespace {

constexpr int kMostRunsOfACommand = 5;  // one that fails so often fails for a reason
constexpr int64_t kTrustedForNs = 300 * kNsPerSecond;
constexpr char kApi[] = "/api/v2/alerts";

std::string Text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// "2026-11-21T09:15:02Z"
std::string Rfc3339(int64_t wall_ns) {
  std::string text = FormatUtc(wall_ns);
  std::ranges::replace(text, ' ', 'T');
  return text + "Z";
}

std::string AlertmanagerUrl(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url.ends_with(kApi) ? url : url + kApi;
}

// A variable ends at the first null byte, and a log at the first line break.
std::string ForEnvironment(std::string text) {
  std::ranges::replace(text, '\0', ' ');
  return text;
}

std::map<std::string, std::string> VariablesOf(const Json& alert) {
  std::map<std::string, std::string> variables;
  for (const auto& [name, key] : {std::pair{"NAME", "alert"},
                                  {"STATE", "state"},
                                  {"RUN", "run"},
                                  {"HOST", "host"},
                                  {"WHAT", "what"},
                                  {"ID", "id"}})
    variables[fmt::format("FULLBORE_ALERT_{}", name)] = ForEnvironment(alert.value(key, ""));
  return variables;
}

Attempt TryOnce(const Parcel& parcel, const std::atomic<bool>& stop) {
  switch (parcel.target.kind) {
    case Target::Kind::kCommand:
      return RunCommand(parcel.target.place, Text(parcel.json), VariablesOf(parcel.json), stop);
    case Target::Kind::kWebhook:
      return Post(parcel.target.place, Text(parcel.json), stop);
    case Target::Kind::kAlertmanager:
      return Post(AlertmanagerUrl(parcel.target.place), Text(ForAlertmanager(parcel.json, WallNs())), stop);
    case Target::Kind::kLog:
      break;
  }
  return {Attempt::End::kDelivered, ""};
}

}  // namespace

Json ForAlertmanager(const Json& alert, int64_t wall_ns) {
  std::string description;
  for (const auto& each : alert.value("evidence", Json::array()))
    description += fmt::format("{}: {}\n", each.value("what", ""),
                               Figure(each.value("value", 0.0), each.value("unit", "")));
  Json annotations = {{"summary", alert.value("what", "")}};
  if (!description.empty()) annotations["description"] = description;
  if (const auto fix = alert.value("fix", Json::array()); !fix.empty()) annotations["fix"] = fix.front();
  if (const auto lost = alert.value("lost", Json::object()); lost.contains("money"))
    annotations["lost"] = fmt::format("{:.2f} {}", lost.value("money", 0.0), lost.value("currency", ""));
  const bool resolved = alert.contains("resolved_unix_ns");
  return Json::array(
      {{{"labels",
         {{"alertname", alert.value("alert", "")},
          {"run", alert.value("run", "")},
          {"stage", alert.value("stage", "")},
          {"instance", alert.value("host", "")}}},
        {"annotations", annotations},
        {"startsAt", Rfc3339(alert.value("fired_unix_ns", wall_ns))},
        {"endsAt", Rfc3339(resolved ? alert.value("resolved_unix_ns", wall_ns) : wall_ns + kTrustedForNs)}}});
}

void Courier::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (const auto& lane : lanes_) lane->thread.join();
  lanes_.clear();
}

void Courier::Send(Parcel parcel) {
  const std::lock_guard lock(mutex_);
  const auto known =
      std::ranges::find_if(lanes_, [&](const auto& lane) { return lane->target == parcel.target; });
  Lane* lane = known == lanes_.end() ? nullptr : known->get();
  if (!lane) {
    lanes_.push_back(std::make_unique<Lane>());
    lane = lanes_.back().get();
    lane->target = parcel.target;
    lane->thread = std::thread([this, lane] { Serve(*lane); });
  }
  if (parcel.refresh && !lane->queue.empty()) return;
  lane->queue.push_back(std::move(parcel));
  ++under_way_;
  wake_.notify_all();
}

std::vector<Outcome> Courier::Take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(outcomes_, {});
}

bool Courier::idle() const {
  const std::lock_guard lock(mutex_);
  return under_way_ == 0 && outcomes_.empty();
}

void Courier::Serve(Lane& lane) {
  while (true) {
    Parcel parcel;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || !lane.queue.empty(); });
      if (stop_) return;
      parcel = lane.queue.front();
    }
    Deliver(lane, parcel);
    const std::lock_guard lock(mutex_);
    if (stop_) return;
    lane.queue.pop_front();
    --under_way_;
  }
}

void Courier::Deliver(Lane& lane, const Parcel& parcel) {
  const int64_t begin_ns = MonotonicNs();
  int64_t pause_ns = patience_.first_pause_ns;
  Attempt attempt;
  for (int tries = 1;; ++tries) {
    attempt = TryOnce(parcel, stop_);
    if (stop_ || attempt.end != Attempt::End::kFailed || parcel.refresh) break;
    const bool command = lane.target.kind == Target::Kind::kCommand && tries >= kMostRunsOfACommand;
    if (command || MonotonicNs() - begin_ns + pause_ns > patience_.gives_up_ns) break;
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, std::chrono::nanoseconds(pause_ns), [&] { return stop_.load(); });
    if (stop_) return;
    pause_ns = std::min(2 * pause_ns, patience_.longest_pause_ns);
  }
  const bool delivered = attempt.end == Attempt::End::kDelivered;
  if (parcel.refresh || (stop_ && !delivered)) return;
  const std::lock_guard lock(mutex_);
  outcomes_.push_back(
      {parcel.tag, lane.target, parcel.json.contains("resolved_unix_ns"), delivered, attempt.problem});
}

}  // namespace fullbore::watch
