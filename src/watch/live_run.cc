#include "watch/live_run.h"

#include <algorithm>

#include "base/clock.h"
#include "base/time_limit.h"
#include "explain/diagnose/diagnose.h"

namespace fullbore::watch {

bool LiveRun::ended() const { return seen() && window_.stages.back().state == record::StageState::kEnded; }

namespace {

// Of a look, which keeps others waiting: a hundred times what the largest of honest runs take.
constexpr int64_t kWindowLimitNs = 2 * kNsPerSecond, kAllLimitNs = 5 * kNsPerSecond;

Error TookTooLong(const std::string& path) {
  return {ErrorCode::kUnsupported, "'" + path + "' takes too long to judge", ""};
}

}  // namespace

Result<void> LiveRun::LookAtWindow() try {
  const TimeLimit limit(kWindowLimitNs);
  auto window = record::ReadEndOfRun(path_, kWindowNs);
  if (!window) return window.error();
  auto of_window = diagnose::Diagnose(*window);
  window_ = std::move(*window);
  of_window_ = std::move(of_window);
  KeepExtent(window_.stages.back());
  return {};
} catch (const OutOfTime&) {
  return TookTooLong(path_);
}

Result<void> LiveRun::LookAtAll() try {
  const TimeLimit limit(kAllLimitNs);
  const auto all = record::ReadRun(path_);
  if (!all) return all.error();
  of_all_ = diagnose::Diagnose(*all, all->stages.back().name);
  judgement_ = Judgement::Of(of_all_, *all);
  KeepExtent(all->stages.back());
  return {};
} catch (const OutOfTime&) {
  return TookTooLong(path_);
}

// A window begins no earlier than a minute ago, and has no steps if the run has paused for longer.
void LiveRun::KeepExtent(const record::Stage& stage) {
  if (stage.id != stage_id_) {
    stage_id_ = stage.id;
    begin_ns_ = stage.begin_ns;
    steps_ = 0;
  }
  begin_ns_ = std::min(begin_ns_, stage.begin_ns);
  if (stage.ranks.empty()) return;
  for (const record::StepWindow& each : stage.ranks.front().windows)
    steps_ = std::max(steps_, each.first_step + each.steps);
}

}  // namespace fullbore::watch
