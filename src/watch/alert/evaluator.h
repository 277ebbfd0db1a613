// The rules of a file applied to one run: observations in, changes out. Pure, with the time as an argument, so that a
// live run and the replay of a finished one give the same result.
#pragma once

#include <cstdint>
#include <vector>

#include "record/recording.h"
#include "watch/alert/alert.h"
#include "watch/alert/past.h"
#include "watch/alert/rule.h"

namespace fullbore::watch {

// Why an alert about an earlier stage is over.
inline constexpr char kNextStage[] = "the next stage has begun";

class Evaluator {
 public:
  explicit Evaluator(RuleSet rules);
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  // Looks at the newest stage as it was at `now_ns`, which only goes forward. The recording holds at least the minute
  // before; what came earlier is remembered from earlier looks. `cut_off`: nobody records it any more.
  std::vector<Transition> Look(const record::Recording& recording, int64_t now_ns, bool cut_off = false);
  // Learns from a recording what the run was like before we began to look, without raising anything about it.
  void Remember(const record::Recording& recording);
  // An alert that fired before we were started, of the newest stage.
  void Adopt(const Alert& alert, int64_t now_ns);

  const RuleSet& rules() const { return rules_; }
  std::vector<Alert> firing() const;

 private:
  void BeginStage(const record::Stage& stage, int64_t now_ns, std::vector<Transition>& changes);

  const RuleSet rules_;
  std::vector<Tracker> trackers_;  // one for each rule
  Past past_;
  int64_t stage_ = -1;
};

// What the rules would have said of a finished run, in order; pending ones included. `cut_off`: it never ended, and
// nobody records it any more.
std::vector<Transition> Replay(const record::Recording& recording, const RuleSet& rules,
                               bool cut_off = false);

}  // namespace fullbore::watch
