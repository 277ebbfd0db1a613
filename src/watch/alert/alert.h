// An alert from its first sign to its end, and the state machine that decides how far it has come. Pure, with the time
// as an argument.
//
//   inactive -- holds --> pending -- for long enough --> firing -- over for long enough --> inactive
//                            `------- over -------> inactive
//
// A firing alert is over only after a while (as long as it took to fire, at most a minute), so that it does not flap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "watch/alert/rule.h"
#include "watch/alert/sight.h"

namespace fullbore::watch {

struct Alert {
  std::string rule;
  int64_t stage = 0;
  int64_t since_ns = 0;  // when it began to hold
  int64_t fired_ns = 0;  // 0: pending
  std::optional<int64_t> resolved_ns;
  std::string what;  // when it fired
  std::string end;   // when it was over: why
  std::vector<diagnose::Evidence> evidence;
  std::vector<std::string> fix;
  std::optional<int64_t> lost_ns;  // so far; absent if unknown
  std::optional<double> lost_money;
};

struct Transition {
  enum class To : uint8_t { kPending, kInactive, kFiring, kResolved };
  To to = To::kPending;
  Alert alert;
};

// One rule on one stage of a run.
class Tracker {
 public:
  Tracker(const Rule& rule, const std::optional<Price>& price) : rule_(&rule), price_(price) {}

  // Looks come in the order of their times.
  std::optional<Transition> Look(const Sight& sight, int64_t stage, int64_t now_ns, bool ended);
  // It fired before we were started; its end is still to come.
  void Adopt(Alert alert, int64_t now_ns);

  const Rule& rule() const { return *rule_; }
  bool firing() const { return alert_ && alert_->fired_ns > 0; }
  const std::optional<Alert>& alert() const { return alert_; }

 private:
  void Count(const Sight& sight, int64_t now_ns);
  Transition Begin(const Sight& sight, int64_t stage, int64_t now_ns);
  Transition Fire(const Sight& sight, int64_t now_ns);
  Transition Resolve(const Sight& sight, int64_t now_ns);

  const Rule* rule_;
  std::optional<Price> price_;
  std::optional<Alert> alert_;  // pending or firing
  int64_t held_ns_ = 0;  // since when the condition has held; later by the time in which that was unknown
  std::optional<int64_t> over_since_ns_;
  int64_t looked_ns_ = 0;
};

}  // namespace fullbore::watch
