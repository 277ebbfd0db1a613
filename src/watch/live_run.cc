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
  const record::Stage& stage = window_.stages.back();
  KeepBegin(stage);
  steps_ = 0;
  if (stage.ranks.empty()) return {};
  for (const record::StepWindow& each : stage.ranks.front().windows)
    steps_ = std::max(steps_, each.first_step + each.steps);
  return {};
}

Result<void> LiveRun::LookAtAll() {
  const auto all = record::ReadRun(path_);
  if (!all) return all.error();
  of_all_ = diagnose::Diagnose(*all, all->stages.back().name);
  judgement_ = Judgement::Of(of_all_, *all);
  KeepBegin(all->stages.back());
  return {};
}

// A window begins no earlier than a minute ago.
void LiveRun::KeepBegin(const record::Stage& stage) {
  begin_ns_ = stage.id == stage_id_ ? std::min(begin_ns_, stage.begin_ns) : stage.begin_ns;
  stage_id_ = stage.id;
}

}  // namespace fullbore::watch
