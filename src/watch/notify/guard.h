// Keeps watch over all live runs of a RunsFolder, with the same rules: what `serve --rules` does. One thread, the one
// that ticks the folder.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "watch/live_run.h"
#include "watch/notify/courier.h"
#include "watch/notify/sentinel.h"

namespace fullbore::watch {

class Guard {
 public:
  // `say` receives each line for the log.
  Guard(RuleSet rules, std::function<void(const std::string&)> say,
        std::shared_ptr<Courier> courier = std::make_shared<Courier>(), OwnAlerts own = OwnAlerts());
  ~Guard();  // what is being said is, and its outcome noted; takes a few seconds at most
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // For RunsFolder::is_owed.
  bool IsOwed(const std::string& run_file) const { return own_.IsOwed(run_file); }

  // To be called from RunsFolder::on_look.
  void OnLook(const std::string& name, const LiveRun& run, bool over);
  // To be called about once a second.
  void Deliver(int64_t now_ns);

  // {"rules": [...], "firing": [...], "history": [...]}: the latter two are "fullbore.alert/1" (docs/alerts.md), newest
  // first; the history is of the runs that were live since we were started, 200 alerts at most.
  nlohmann::ordered_json State() const;

 private:
  struct Post {
    std::unique_ptr<Sentinel> sentinel;
    bool over = false;
  };

  const RuleSet rules_;
  const std::function<void(const std::string&)> say_;
  const std::shared_ptr<Courier> courier_;  // of all runs
  const OwnAlerts own_;
  std::map<std::string, Post> posts_;  // by run
  std::deque<nlohmann::ordered_json> past_;
};

}  // namespace fullbore::watch
