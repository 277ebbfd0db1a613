#include "watch/alert/alert.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace fullbore::watch {

namespace {

constexpr int64_t kLongestQuietNs = 60 * kNsPerSecond;

}  // namespace

std::optional<Transition> Tracker::Look(const Sight& sight, int64_t stage, int64_t now_ns, bool ended) {
  using State = Sight::State;
  if (sight.state == State::kUnknown) {  // for so long nobody knows whether it held
    if (alert_) held_ns_ += now_ns - std::exchange(looked_ns_, now_ns);
    return std::nullopt;
  }
  if (!alert_) {
    if (sight.state != State::kHolds) return std::nullopt;
    Transition begun = Begin(sight, stage, now_ns);
    return rule_->for_ns > 0 ? begun : Fire(sight, now_ns);
  }
  Count(sight, now_ns);
  if (!firing()) {
    if (sight.state == State::kOver)
      return Transition{Transition::To::kInactive, *std::exchange(alert_, std::nullopt)};
    const bool long_enough = now_ns - held_ns_ >= rule_->for_ns;
    return sight.state == State::kHolds && long_enough ? std::optional(Fire(sight, now_ns)) : std::nullopt;
  }
  if (sight.state != State::kOver) {
    over_since_ns_.reset();
    return std::nullopt;
  }
  if (!over_since_ns_) over_since_ns_ = now_ns;
  const int64_t quiet_ns = ended ? 0 : std::min(rule_->for_ns, kLongestQuietNs);
  return now_ns - *over_since_ns_ >= quiet_ns ? std::optional(Resolve(sight, now_ns)) : std::nullopt;
}

void Tracker::Adopt(Alert alert, int64_t now_ns) {
  alert_ = std::move(alert);
  looked_ns_ = now_ns;
}

Transition Tracker::Begin(const Sight& sight, int64_t stage, int64_t now_ns) {
  alert_ = Alert{};
  alert_->rule = rule_->name;
  alert_->stage = stage;
  alert_->since_ns = std::min(sight.since_ns.value_or(now_ns), now_ns);
  held_ns_ = now_ns;
  looked_ns_ = alert_->since_ns;
  over_since_ns_.reset();
  Count(sight, now_ns);
  return {Transition::To::kPending, *alert_};
}

// What is lost between two looks is lost at the rate of the second.
void Tracker::Count(const Sight& sight, int64_t now_ns) {
  if (sight.lost && sight.state != Sight::State::kOver) {
    const double ns = *sight.lost * static_cast<double>(std::max<int64_t>(0, now_ns - looked_ns_));
    alert_->lost_ns = alert_->lost_ns.value_or(0) + static_cast<int64_t>(ns);
    if (price_) alert_->lost_money = static_cast<double>(*alert_->lost_ns) / 3600e9 * price_->per_hour;
  }
  looked_ns_ = now_ns;
}

Transition Tracker::Fire(const Sight& sight, int64_t now_ns) {
  alert_->fired_ns = now_ns;
  alert_->what = sight.what;
  alert_->evidence = sight.evidence;
  alert_->fix = sight.fix;
  return {Transition::To::kFiring, *alert_};
}

Transition Tracker::Resolve(const Sight& sight, int64_t now_ns) {
  alert_->resolved_ns = now_ns;
  alert_->end = sight.what;
  return {Transition::To::kResolved, *std::exchange(alert_, std::nullopt)};
}

}  // namespace fullbore::watch
