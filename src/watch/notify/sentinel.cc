#include "watch/notify/sentinel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "record/run_reader.h"

namespace fullbore::watch {

namespace {

constexpr int kMostFailures = 3;                   // of reading the history, before it is done without
constexpr int64_t kRefreshNs = 60 * kNsPerSecond;  // Alertmanager forgets what is not said again

// "firing 1 webhook:https://example.com/***": which of the rule's targets has not heard what.
std::string Debt(bool resolved, size_t target, const Target& to) {
  return fmt::format("{} {} {}", resolved ? "resolved" : "firing", target, Shown(to));
}

std::set<std::string> DebtsOf(bool resolved, const Rule& rule) {
  std::set<std::string> debts;
  for (size_t i = 0; i < rule.notify.size(); ++i) {
    if (rule.notify[i].kind != Target::Kind::kLog) debts.insert(Debt(resolved, i, rule.notify[i]));
  }
  return debts;
}

const Rule* RuleNamed(const RuleSet& rules, const std::string& name) {
  const auto found = std::ranges::find(rules.rules, name, &Rule::name);
  return found == rules.rules.end() ? nullptr : &*found;
}

std::string NotKept(const Error& error) { return "the history of alerts is not kept: " + error.text; }

record::AlertRow RowOf(const Alert& alert, const std::set<std::string>& undelivered) {
  return {0,          alert.stage,      alert.rule, alert.since_ns, alert.fired_ns, alert.resolved_ns,
          alert.what, DetailsOf(alert), undelivered};
}

}  // namespace

Alert AlertOf(const record::AlertRow& row) {
  Alert alert;
  alert.rule = row.rule;
  alert.stage = row.stage;
  alert.since_ns = row.since_ns;
  alert.fired_ns = row.fired_ns;
  alert.resolved_ns = row.resolved_ns;
  alert.what = row.what;
  ReadDetails(row.details, alert);
  return alert;
}

Sentinel::Sentinel(std::string run_file, RuleSet rules, std::function<void(const std::string&)> say,
                   std::shared_ptr<Courier> courier, OwnAlerts own)
    : path_(std::move(run_file)),
      evaluator_(std::move(rules)),
      say_(std::move(say)),
      courier_(std::move(courier)),
      own_(std::move(own)) {}

Sentinel::~Sentinel() {
  if (courier_.use_count() == 1) courier_->Stop();
  NoteOutcomes();
}

void Sentinel::Look(const record::Recording& recording, int64_t now_ns, bool cut_off) {
  if (recording.stages.empty()) return;
  if (!resumed_) resumed_ = Resume(recording, now_ns) || ++failures_ == kMostFailures;
  if (!resumed_) return;
  for (const Transition& change : evaluator_.Look(recording, now_ns, cut_off)) {
    if (change.to == Transition::To::kFiring) Fired(change.alert, recording);
    if (change.to == Transition::To::kResolved) Resolved(change.alert);
  }
  for (const Alert& alert : evaluator_.firing()) {  // what is lost so far
    if (const auto row = rows_.find({alert.stage, alert.rule}); row != rows_.end())
      known_.at(row->second).alert = alert;
  }
}

bool Sentinel::Resume(const record::Recording& recording, int64_t now_ns) {
  const auto rows = record::ReadAlerts(path_);
  if (!rows) return false;
  const auto all = record::ReadRun(path_);
  if (all) evaluator_.Remember(*all);
  const record::Recording& whole = all ? *all : recording;
  resumes_.reset(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  const bool alone = resumes_.valid() && flock(resumes_.get(), LOCK_EX | LOCK_NB) == 0;
  for (const record::AlertRow& row : *rows) {
    if (!RuleNamed(evaluator_.rules(), row.rule)) continue;
    Known& known = known_[row.id];
    known = {AlertOf(row), OriginOf(whole, row.stage), {}, own_.Has(path_, row)};
    if (known.ours) known.undelivered = row.undelivered;
    if (alone && known.ours) SendAgain(row.id);
    if (row.resolved_ns) continue;
    rows_[{row.stage, row.rule}] = row.id;
    if (row.stage == whole.stages.back().id) {
      evaluator_.Adopt(known.alert, now_ns);
      continue;
    }
    Alert over = known.alert;
    over.resolved_ns = now_ns;
    over.end = kNextStage;
    Resolved(over);
  }
  return true;
}

void Sentinel::Fired(const Alert& alert, const record::Recording& recording) {
  const Rule& rule = *RuleNamed(evaluator_.rules(), alert.rule);
  const std::set<std::string> undelivered = DebtsOf(/*resolved=*/false, rule);
  int64_t id = next_unwritten_;
  if (const auto log = record::AlertLog::Of(path_); !log) {
    SayOnce(NotKept(log.error()));
  } else if (const auto written = log->Fire(RowOf(alert, undelivered)); !written) {
    SayOnce(NotKept(written.error()));  // perhaps because the disk is full: then it must be said all the more
  } else if (!*written) {
    return;  // another watcher was faster, and says it
  } else {
    id = **written;
  }
  if (id < 0) --next_unwritten_;
  const auto noted = id > 0 ? own_.Note(path_, RowOf(alert, {})) : Result<void>();
  if (!noted)
    SayOnce("after a restart, earlier alerts will not be recognised as ours: " + noted.error().text);
  known_[id] = {alert, OriginOf(recording, alert.stage), undelivered};
  rows_[{alert.stage, alert.rule}] = id;
  Send(id);
}

void Sentinel::Resolved(const Alert& alert) {
  const auto row = rows_.find({alert.stage, alert.rule});
  if (row == rows_.end()) return;  // another watcher's
  const int64_t id = row->second;
  rows_.erase(row);
  Known& known = known_[id];
  known.alert = alert;
  std::set<std::string> debts;
  if (known.ours) debts = DebtsOf(/*resolved=*/true, *RuleNamed(evaluator_.rules(), alert.rule));
  if (const auto log = record::AlertLog::Of(path_); id > 0 && log) {
    const auto written = log->Resolve(RowOf(alert, debts));
    if (written && !*written) return;  // another watcher was faster, and says it
    if (!written) SayOnce(NotKept(written.error()));
  }
  if (!known.ours) return;
  known.undelivered.merge(debts);
  Send(id);
  Settled(id, {});
}

void Sentinel::Send(int64_t id) {
  const Known& known = known_.at(id);
  const RuleSet& rules = evaluator_.rules();
  const auto json = ToJson(known.alert, known.origin, rules.price);
  for (const Target& target : RuleNamed(rules, known.alert.rule)->notify) {
    if (target.kind == Target::Kind::kLog)
      say_(InWords(known.alert, rules.price));
    else
      courier_->Send({target, json, id, false, this});
  }
}

// These have heard it, or never will. Once all have, nobody has to know any more whose alert it was.
void Sentinel::Settled(int64_t id, const std::set<std::string>& debts) {
  Known& known = known_.at(id);
  for (const std::string& debt : debts) known.undelivered.erase(debt);
  if (known.alert.resolved_ns && known.undelivered.empty()) own_.Forget(path_, RowOf(known.alert, {}));
}

// What a watcher before us could not deliver.
void Sentinel::SendAgain(int64_t id) {
  const Known& known = known_.at(id);
  const RuleSet& rules = evaluator_.rules();
  const std::vector<Target>& targets = RuleNamed(rules, known.alert.rule)->notify;
  for (const bool resolved : {false, true}) {
    Alert alert = known.alert;
    if (!resolved) alert.resolved_ns.reset();
    for (size_t i = 0; i < targets.size(); ++i) {
      if (known.undelivered.contains(Debt(resolved, i, targets[i])))
        courier_->Send({targets[i], ToJson(alert, known.origin, rules.price), id, false, this});
    }
  }
}

void Sentinel::NoteOutcomes() {
  if (const std::string problem = courier_->TakeProblem(); !problem.empty()) say_(problem);
  for (const Outcome& outcome : courier_->Take(this)) {
    const auto known = known_.find(outcome.tag);
    if (known == known_.end()) continue;
    const std::vector<Target>& targets = RuleNamed(evaluator_.rules(), known->second.alert.rule)->notify;
    std::set<std::string> settled;
    for (size_t i = 0; i < targets.size(); ++i) {
      if (targets[i] == outcome.target) settled.insert(Debt(outcome.resolved, i, targets[i]));
    }
    Settled(outcome.tag, settled);
    if (!outcome.delivered) {
      say_(fmt::format("alert '{}' could not be delivered to {}: {}", known->second.alert.rule,
                       Shown(outcome.target), outcome.problem));
    }
    if (const auto log = record::AlertLog::Of(path_); log && outcome.tag > 0)
      (void)log->Settle(outcome.tag, settled);
  }
}

void Sentinel::Deliver(int64_t now_ns) {
  NoteOutcomes();
  if (now_ns < next_refresh_ns_) return;
  next_refresh_ns_ = now_ns + kRefreshNs;
  for (const auto& [which, id] : rows_) {
    const Known& known = known_.at(id);
    if (!known.ours) continue;
    for (const Target& target : RuleNamed(evaluator_.rules(), which.second)->notify) {
      if (target.kind == Target::Kind::kAlertmanager)
        courier_->Send({target, ToJson(known.alert, known.origin, evaluator_.rules().price), id, true, this});
    }
  }
}

std::vector<nlohmann::ordered_json> Sentinel::History() const {
  std::vector<nlohmann::ordered_json> history;
  for (const auto& [id, known] : known_)
    history.push_back(ToJson(known.alert, known.origin, evaluator_.rules().price));
  return history;
}

std::set<std::string> Sentinel::waiting() const {
  std::set<std::string> waiting;
  for (const auto& [id, known] : known_) {
    for (const std::string& debt : known.undelivered)
      waiting.insert(debt.substr(debt.find(' ', debt.find(' ') + 1) + 1));
  }
  return waiting;
}

void Sentinel::SayOnce(const std::string& line) {
  if (said_.insert(line).second) say_(line);
}

}  // namespace fullbore::watch
