#include "watch/live_run.h"

#include <algorithm>

#include "explain/diagnose/diagnose.h"

namespace fullbore::watch {

bool LiveRun::ended() const { return seen() && window_.stages.back().state == record::StageState::kEnded; }

Result<void> LiveRun::LookAtWindow() {
  auto window = record::ReadEndOfRun(path_, kWindowNs);
  if (!window) return window.error();
  window_ = std::move(*window);
  of_window_ = diagnose::Diagnose(window_);
  KeepExtent(window_.stages.back());
  return {};
}

Result<void> LiveRun::LookAtAll() {
  const auto all = record::ReadRun(path_);
  if (!all) return all.error();
  of_all_ = diagnose::Diagnose(*all, all->stages.back().name);
  judgement_ = Judgement::Of(of_all_, *all);
  KeepExtent(all->stages.back());
  return {};
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
