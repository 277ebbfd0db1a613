// Keeps watch over one run: looks at it with the rules, keeps the history in its run file, and sends what is to be said.
// Started again, it goes on where the history says that it was: what fired is not fired again, and what was not
// delivered is. Of what the history says that no watcher of this user has noted (own_alerts.h), nothing is ever sent:
// run files come from anybody. One thread; never blocks on a receiver.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "record/alert_log.h"
#include "record/recording.h"
#include "watch/alert/alert_json.h"
#include "watch/alert/evaluator.h"
#include "watch/notify/courier.h"
#include "watch/notify/own_alerts.h"

namespace fullbore::watch {

// As the history has it.
Alert AlertOf(const record::AlertRow& row);

class Sentinel {
 public:
  // `say` receives each line for the log.
  Sentinel(std::string run_file, RuleSet rules, std::function<void(const std::string&)> say,
           std::shared_ptr<Courier> courier = std::make_shared<Courier>(), OwnAlerts own = OwnAlerts());
  // Leaves what is not delivered to the next one. Ends a courier that nobody else has, which takes a few seconds at
  // most; another one must have been stopped, or have nothing of ours under way.
  ~Sentinel();
  Sentinel(const Sentinel&) = delete;
  Sentinel& operator=(const Sentinel&) = delete;

  // `recording` holds at least the last minute of the newest stage; see Evaluator::Look. The first look reads all of
  // the run file, to know what the run was like before.
  void Look(const record::Recording& recording, int64_t now_ns, bool cut_off = false);
  // Notes what was delivered. Meant to be called about once a second.
  void Deliver(int64_t now_ns);

  bool idle() const { return courier_->idle(this); }
  std::vector<Alert> firing() const { return evaluator_.firing(); }
  // All alerts of the run that are known here, oldest first.
  std::vector<nlohmann::ordered_json> History() const;
  // Who has not been told yet, in words, secrets masked.
  std::set<std::string> waiting() const;

 private:
  struct Known {
    Alert alert;
    Origin origin;
    std::set<std::string> undelivered;
    bool ours = true;  // a watcher of this user saw it begin
  };

  bool Resume(const record::Recording& recording, int64_t now_ns);  // false: perhaps at the next look
  void Fired(const Alert& alert, const record::Recording& recording);
  void Resolved(const Alert& alert);
  void Settled(int64_t id, const std::set<std::string>& debts);
  void Send(int64_t id);
  void SendAgain(int64_t id);
  void NoteOutcomes();
  void SayOnce(const std::string& line);

  const std::string path_;
  Evaluator evaluator_;
  std::function<void(const std::string&)> say_;
  UniqueFd resumes_;  // locked by the one watcher that delivers what another one left
  bool resumed_ = false;
  int failures_ = 0;                                         // to resume
  std::map<int64_t, Known> known_;                           // by row; below 0 if it could not be written
  std::map<std::pair<int64_t, std::string>, int64_t> rows_;  // what fires: by stage and rule
  std::set<std::string> said_;
  int64_t next_refresh_ns_ = 0, next_unwritten_ = -1;
  const std::shared_ptr<Courier> courier_;
  const OwnAlerts own_;
};

}  // namespace fullbore::watch
