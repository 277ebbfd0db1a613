#include "watch/alert/evaluator.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "watch/alert/sight.h"

namespace fullbore::watch {

namespace {

// A replay looks as often as somebody who watches, and less often at a run of many hours.
constexpr int64_t kBetweenLooksNs = 2 * kNsPerSecond, kMostLooks = 5'000;
constexpr int64_t kSeenNs = 70 * kNsPerSecond;  // rules look at the last minute

int64_t BetweenLooks(const record::Stage& stage, const RuleSet& rules) {
  int64_t shortest_ns = kBetweenLooksNs;
  for (const Rule& rule : rules.rules)
    shortest_ns = std::min(shortest_ns, std::max(kNsPerSecond / 2, rule.for_ns / 4));
  return std::max(shortest_ns, (stage.end_ns - stage.begin_ns) / kMostLooks);
}

// The recording with one stage, and of that everything but steps, windows and readings, which are nearly all of it.
record::Recording WithoutBulk(const record::Recording& recording, const record::Stage& stage) {
  record::Recording bare = recording;
  bare.stages = {stage};
  for (record::RankInfo& rank : bare.stages[0].ranks) {
    rank.steps.clear();
    rank.windows.clear();
  }
  for (record::Series& series : bare.stages[0].series) series.readings.clear();
  bare.stages[0].device_windows.clear();
  return bare;
}

template <typename T, typename Time>
void Take(const std::vector<T>& from, int64_t begin_ns, int64_t end_ns, Time time, std::vector<T>& into) {
  into.assign(std::ranges::upper_bound(from, begin_ns, {}, time),
              std::ranges::upper_bound(from, end_ns, {}, time));
}

// What a reader of the live run would have seen at `end_ns`.
record::Recording EndOf(const record::Stage& whole, const record::Recording& bare, int64_t begin_ns,
                        int64_t end_ns) {
  record::Recording end = bare;
  record::Stage& stage = end.stages[0];
  for (size_t i = 0; i < stage.ranks.size(); ++i) {
    Take(whole.ranks[i].steps, begin_ns, end_ns, &record::Step::end_ns, stage.ranks[i].steps);
    Take(whole.ranks[i].windows, begin_ns, end_ns, &record::StepWindow::end_ns, stage.ranks[i].windows);
  }
  for (size_t i = 0; i < stage.series.size(); ++i)
    Take(whole.series[i].readings, begin_ns, end_ns, &record::Reading::t_ns, stage.series[i].readings);
  return end;
}

}  // namespace

Evaluator::Evaluator(RuleSet rules) : rules_(std::move(rules)) {
  for (const Rule& rule : rules_.rules) trackers_.emplace_back(rule, rules_.price);
}

std::vector<Transition> Evaluator::Look(const record::Recording& recording, int64_t now_ns, bool cut_off) {
  std::vector<Transition> changes;
  if (recording.stages.empty()) return changes;
  const record::Stage& stage = recording.stages.back();
  if (stage.id != stage_) BeginStage(stage, now_ns, changes);
  past_.Take(stage, now_ns);
  const Moment moment(recording, past_, now_ns, cut_off);
  for (Tracker& tracker : trackers_) {
    const auto since_ns = tracker.alert() ? std::optional(tracker.alert()->since_ns) : std::nullopt;
    const Sight sight = LookAt(tracker.rule(), moment, since_ns);
    if (auto change = tracker.Look(sight, stage.id, now_ns, moment.ended()))
      changes.push_back(std::move(*change));
  }
  return changes;
}

// What fires about an earlier stage is over.
void Evaluator::BeginStage(const record::Stage& stage, int64_t now_ns, std::vector<Transition>& changes) {
  if (stage_ >= 0) {
    const Sight over = {Sight::State::kOver, kNextStage, {}, {}, {}, {}};
    for (Tracker& tracker : trackers_) {
      if (auto change = tracker.Look(over, stage_, now_ns, /*ended=*/true))
        changes.push_back(std::move(*change));
    }
    past_ = Past();
  }
  stage_ = stage.id;
}

void Evaluator::Remember(const record::Recording& recording) {
  if (recording.stages.empty()) return;
  const record::Stage& stage = recording.stages.back();
  stage_ = stage.id;
  past_.Take(stage, stage.end_ns);
}

void Evaluator::Adopt(const Alert& alert, int64_t now_ns) {
  for (Tracker& tracker : trackers_) {
    if (tracker.rule().name == alert.rule) tracker.Adopt(alert, now_ns);
  }
}

std::vector<Alert> Evaluator::firing() const {
  std::vector<Alert> alerts;
  for (const Tracker& tracker : trackers_) {
    if (tracker.firing()) alerts.push_back(*tracker.alert());
  }
  return alerts;
}

std::vector<Transition> Replay(const record::Recording& recording, const RuleSet& rules, bool cut_off) {
  std::vector<Transition> all;
  Evaluator evaluator(rules);
  for (const record::Stage& stage : recording.stages) {
    const record::Recording bare = WithoutBulk(recording, stage);
    const int64_t step_ns = BetweenLooks(stage, rules);
    for (int64_t t_ns = stage.begin_ns;; t_ns = std::min(t_ns + step_ns, stage.end_ns)) {
      const bool last = t_ns >= stage.end_ns && &stage == &recording.stages.back();
      const record::Recording minute = EndOf(stage, bare, t_ns - std::max(kSeenNs, 2 * step_ns), t_ns);
      for (Transition& change : evaluator.Look(minute, t_ns, last && cut_off))
        all.push_back(std::move(change));
      if (t_ns >= stage.end_ns) break;
    }
  }
  return all;
}

}  // namespace fullbore::watch
