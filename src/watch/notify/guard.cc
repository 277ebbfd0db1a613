#include "watch/notify/guard.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"

namespace fullbore::watch {

namespace {

constexpr size_t kMostPast = 200;

std::string IdOf(const nlohmann::ordered_json& alert) { return alert.value("id", ""); }

}  // namespace

Guard::Guard(RuleSet rules, std::function<void(const std::string&)> say, std::shared_ptr<Courier> courier,
             OwnAlerts own)
    : rules_(std::move(rules)), say_(std::move(say)), courier_(std::move(courier)), own_(std::move(own)) {}

Guard::~Guard() {
  courier_->Stop();
  posts_.clear();
}

void Guard::OnLook(const std::string& name, const LiveRun& run, bool over) {
  if (!run.seen()) return;
  Post& post = posts_[name];
  if (post.over && over) return;
  if (!post.sentinel) {
    post.sentinel = std::make_unique<Sentinel>(
        run.path(), rules_, [this, name](const std::string& line) { say_(name + ": " + line); }, courier_,
        own_);
  }
  post.sentinel->Look(run.window(), run.end_ns(), over && !run.ended());
  post.over = over;
}

void Guard::Deliver(int64_t now_ns) {
  if (const std::string problem = courier_->TakeProblem(); !problem.empty()) say_(problem);
  for (auto at = posts_.begin(); at != posts_.end();) {
    Sentinel& sentinel = *at->second.sentinel;
    sentinel.Deliver(now_ns);
    if (!at->second.over || !sentinel.idle()) {
      ++at;
      continue;
    }
    for (const auto& alert : sentinel.History()) {
      std::erase_if(past_,
                    [&](const auto& each) { return IdOf(each) == IdOf(alert); });  // of an earlier stage
      past_.push_front(alert);
    }
    while (past_.size() > kMostPast) past_.pop_back();
    at = posts_.erase(at);
  }
}

nlohmann::ordered_json Guard::State() const {
  using Json = nlohmann::ordered_json;
  Json state = {{"rules", Json::array()}, {"firing", Json::array()}, {"history", Json::array()}};
  for (const Rule& rule : rules_.rules) {
    Json tells = Json::array();
    for (const Target& target : rule.notify) tells.push_back(Shown(target));
    state["rules"].push_back({{"alert", rule.name}, {"for", FormatDuration(rule.for_ns)}, {"notify", tells}});
  }
  std::vector<Json> known;
  std::set<std::string> live;
  for (const auto& [name, post] : posts_) {
    for (Json& alert : post.sentinel->History()) {
      live.insert(IdOf(alert));
      known.push_back(std::move(alert));
    }
  }
  for (const Json& alert : past_) {
    if (!live.contains(IdOf(alert))) known.push_back(alert);
  }
  std::ranges::stable_sort(known, std::ranges::greater(),
                           [](const Json& alert) { return alert.value("fired_unix_ns", int64_t{0}); });
  for (const Json& alert : known) {
    const bool fires = alert.value("state", "") == "firing" && live.contains(IdOf(alert));
    state[fires ? "firing" : "history"].push_back(alert);
  }
  return state;
}

}  // namespace fullbore::watch
