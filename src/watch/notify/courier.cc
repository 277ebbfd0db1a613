#include "watch/notify/courier.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "watch/notify/forms.h"

namespace fullbore::watch {

using Json = nlohmann::ordered_json;

namespace {

constexpr int kMostRunsOfACommand = 5;  // one that fails so often fails for a reason
constexpr size_t kMostThreads = 4, kMostOfAMessage = 10'000;
constexpr int64_t kLongestWaitNs = 60 * kNsPerSecond;
constexpr char kApi[] = "/api/v2/alerts";

std::string Text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

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

// One message for several alerts, where the receiver takes one at a time: the first of them, and how many there are
// beside it.
Json Summed(const std::vector<Json>& alerts) {
  Json sum = alerts.front();
  if (alerts.size() == 1) return sum;
  const size_t more = alerts.size() - 1;
  sum["and_more"] = more;
  sum["what"] = fmt::format("{} (and {} more)", sum.value("what", ""), more);
  return sum;
}

Json ListFor(const std::vector<Json>& alerts) {
  Json list = Json::array();
  for (const Json& alert : alerts) list.push_back(ForAlertmanager(alert, WallNs()).front());
  return list;
}

Attempt TryOnce(const Target& target, const std::vector<Json>& alerts, CommandMark& mark,
                const std::atomic<bool>& stop) {
  switch (target.kind) {
    case Target::Kind::kCommand:
      return RunCommand(target.place, Text(Summed(alerts)), VariablesOf(Summed(alerts)), mark, stop);
    case Target::Kind::kWebhook:
      return Post(target.place, Text(Summed(alerts)), stop);
    case Target::Kind::kSlack:
      return Post(target.place, Text(ForSlack(Summed(alerts))), stop);
    case Target::Kind::kTeams:
      return Post(target.place, Text(ForTeams(Summed(alerts))), stop);
    case Target::Kind::kDiscord:
      return Post(target.place, Text(ForDiscord(Summed(alerts))), stop);
    case Target::Kind::kAlertmanager:
      return Post(AlertmanagerUrl(target.place), Text(ListFor(alerts)), stop);
    case Target::Kind::kLog:
      break;
  }
  return {Attempt::End::kDelivered, ""};
}

// Alertmanager alone takes several alerts at a time.
bool IsList(const Target& target) { return target.kind == Target::Kind::kAlertmanager; }

bool IsSameAlert(const Parcel& a, const Parcel& b) { return a.sender == b.sender && a.tag == b.tag; }

}  // namespace

void Courier::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  mark_.EndAll(kLeaveNs);
}

Courier::Lane& Courier::LaneOf(const Target& target) {
  const auto known = std::ranges::find_if(lanes_, [&](const auto& lane) { return lane->target == target; });
  if (known != lanes_.end()) return **known;
  lanes_.push_back(std::make_unique<Lane>());
  lanes_.back()->target = target;
  return *lanes_.back();
}

void Courier::Send(Parcel parcel) {
  const std::lock_guard lock(mutex_);
  Lane& lane = LaneOf(parcel.target);
  const auto is_said = [&](const Parcel& each) { return IsSameAlert(each, parcel) && !each.refresh; };
  // What waits is said as it is when its turn comes, and says no less than a refresh would.
  if (parcel.refresh && std::ranges::any_of(lane.queue, is_said)) return;
  const auto waits = lane.queue.begin() + static_cast<std::ptrdiff_t>(lane.message);
  const auto old = std::find_if(
      waits, lane.queue.end(), [&](const Parcel& each) { return IsSameAlert(each, parcel) && each.refresh; });
  if (old != lane.queue.end()) lane.queue.erase(old);
  lane.queue.push_back(std::move(parcel));
  MakeThread();
  wake_.notify_all();
}

// Where there is work for another one.
void Courier::MakeThread() {
  if (stop_ || waiting_threads_ > 0 || threads_.size() >= kMostThreads) return;
  try {
    threads_.emplace_back([this] { Work(); });
    said_problem_ = false;
  } catch (const std::system_error& error) {  // at the limit of processes: perhaps not the next time
    if (threads_.empty() && !std::exchange(said_problem_, true))
      problem_ = std::string("alerts are waiting to be delivered, because no thread can be started: ") +
                 error.what();
  }
}

std::string Courier::TakeProblem() {
  const std::lock_guard lock(mutex_);
  return std::exchange(problem_, "");
}

std::vector<Outcome> Courier::Take(const void* sender) {
  const std::lock_guard lock(mutex_);
  const bool waits = std::ranges::any_of(lanes_, [](const auto& lane) { return !lane->queue.empty(); });
  if (waits && threads_.empty()) MakeThread();
  std::vector<Outcome> taken;
  std::erase_if(outcomes_, [&](auto& each) {
    if (each.first != sender) return false;
    taken.push_back(std::move(each.second));
    return true;
  });
  return taken;
}

bool Courier::idle(const void* sender) const {
  const std::lock_guard lock(mutex_);
  const auto is_of_sender = [&](const Parcel& parcel) { return parcel.sender == sender; };
  return std::ranges::none_of(outcomes_, [&](const auto& each) { return each.first == sender; }) &&
         std::ranges::none_of(
             lanes_, [&](const auto& lane) { return std::ranges::any_of(lane->queue, is_of_sender); });
}

// When the lane may begin its next message.
int64_t Courier::DueNs(Lane& lane, int64_t now_ns) const {
  while (!lane.begun_ns.empty() && now_ns - lane.begun_ns.front() >= patience_.minute_ns)
    lane.begun_ns.pop_front();
  const bool is_full = lane.message == 0 && lane.begun_ns.size() >= patience_.most_a_minute;
  return is_full ? lane.begun_ns.front() + patience_.minute_ns : lane.next_try_ns;
}

// Of the lanes that are due, the one that is for longest; else nothing, and when one will be.
Courier::Lane* Courier::NextLane(int64_t now_ns, int64_t* wake_ns) {
  Lane* next = nullptr;
  int64_t earliest_ns = std::numeric_limits<int64_t>::max();
  for (const auto& lane : lanes_) {
    if (lane->queue.empty() || lane->busy) continue;
    const int64_t due_ns = DueNs(*lane, now_ns);
    if (due_ns >= earliest_ns) continue;
    earliest_ns = due_ns;
    next = lane.get();
  }
  *wake_ns = earliest_ns;
  return next && earliest_ns <= now_ns ? next : nullptr;
}

// How many of the parcels that wait go into the next message.
size_t Courier::CountOf(const Lane& lane) const {
  if (lane.alone > 0) return 1;
  const size_t most = std::min(lane.queue.size(), kMostOfAMessage);
  if (!IsList(lane.target)) return lane.begun_ns.size() + 1 >= patience_.most_a_minute ? most : 1;
  // A list has no order: the end of an alert goes into the list after that of its beginning.
  size_t count = 1;
  const auto is_in = [&](const Parcel& parcel) {
    const auto end = lane.queue.begin() + static_cast<std::ptrdiff_t>(count);
    return std::any_of(lane.queue.begin(), end,
                       [&](const Parcel& each) { return IsSameAlert(each, parcel); });
  };
  while (count < most && !is_in(lane.queue[count])) ++count;
  return count;
}

void Courier::Begin(Lane& lane, int64_t now_ns) {
  lane.message = CountOf(lane);
  lane.begun_ns.push_back(now_ns);
  lane.first_try_ns = now_ns;
  lane.pause_ns = patience_.first_pause_ns;
  lane.tries = 0;
}

void Courier::Work() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const int64_t now_ns = MonotonicNs();
    int64_t wake_ns = 0;
    Lane* const lane = NextLane(now_ns, &wake_ns);
    if (!lane) {
      ++waiting_threads_;
      const int64_t pause_ns = std::clamp<int64_t>(wake_ns - now_ns, 0, kLongestWaitNs);
      wake_.wait_for(lock, std::chrono::nanoseconds(pause_ns));
      --waiting_threads_;
      continue;
    }
    if (lane->message == 0) Begin(*lane, now_ns);
    lane->busy = true;
    ++lane->tries;
    std::vector<Json> alerts;
    for (size_t i = 0; i < lane->message; ++i) alerts.push_back(lane->queue[i].json);
    lock.unlock();
    const Attempt attempt = TryOnce(lane->target, alerts, mark_, stop_);
    lock.lock();
    Conclude(*lane, attempt);
    wake_.notify_all();
  }
}

// Whether the message is tried once more as it is.
bool Courier::TriesAgain(const Lane& lane, const Attempt& attempt, int64_t now_ns) const {
  if (attempt.end != Attempt::End::kFailed) return false;
  if (lane.target.kind == Target::Kind::kCommand && lane.tries >= kMostRunsOfACommand) return false;
  const auto end = lane.queue.begin() + static_cast<std::ptrdiff_t>(lane.message);
  const bool says_new =
      std::any_of(lane.queue.begin(), end, [](const Parcel& each) { return !each.refresh; });
  const int64_t pause_ns = std::max(lane.pause_ns, attempt.wait_ns);
  return says_new && now_ns - lane.first_try_ns + pause_ns <= patience_.gives_up_ns;
}

void Courier::Conclude(Lane& lane, const Attempt& attempt) {
  lane.busy = false;
  const bool delivered = attempt.end == Attempt::End::kDelivered;
  if (stop_ && !delivered) return;
  const int64_t now_ns = MonotonicNs();
  if (TriesAgain(lane, attempt, now_ns)) {
    lane.next_try_ns = now_ns + std::max(lane.pause_ns, attempt.wait_ns);
    lane.pause_ns = std::min(2 * lane.pause_ns, patience_.longest_pause_ns);
    return;
  }
  const size_t concluded = std::exchange(lane.message, 0);
  lane.next_try_ns = 0;
  if (attempt.end == Attempt::End::kRefused && concluded > 1 && IsList(lane.target)) {
    lane.alone = concluded;  // one alert that the receiver does not like spoils all of a list
    return;
  }
  for (size_t i = 0; i < concluded; ++i) {
    const Parcel& parcel = lane.queue.front();
    const bool resolved = parcel.json.contains("resolved_unix_ns");
    if (!parcel.refresh)
      outcomes_.emplace_back(parcel.sender,
                             Outcome{parcel.tag, lane.target, resolved, delivered, attempt.problem});
    lane.queue.pop_front();
  }
  lane.alone -= std::min(lane.alone, concluded);
}

}  // namespace fullbore::watch
