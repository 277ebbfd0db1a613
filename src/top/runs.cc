#include "top/runs.h"

#include <algorithm>

#include "record/metrics.h"
#include "report/figures.h"
#include "watch/runs_folder.h"

namespace fullbore::top {

using record::Metric;

namespace {

// What the processes of each role use: the last readings of the sums that are not by rank.
std::vector<RoleUse> RolesOf(const record::Stage& stage) {
  std::map<std::string, RoleUse> roles;
  const auto fill = [&](Metric metric, double RoleUse::*member) {
    for (const record::Series& series : stage.series) {
      const auto role = series.key.labels.find("role");
      if (!IsOf(series.key, metric) || series.key.labels.size() != 1 || role == series.key.labels.end() ||
          series.readings.empty())
        continue;
      roles[role->second].*member = series.readings.back().value;
    }
  };
  fill(Metric::kProcessCount, &RoleUse::count);
  fill(Metric::kProcessCpu, &RoleUse::cores);
  fill(Metric::kProcessMemory, &RoleUse::memory);
  std::vector<RoleUse> all;
  for (auto& [role, use] : roles) {
    use.role = role;
    if (use.count > 0) all.push_back(std::move(use));
  }
  return all;
}

void AddWindows(const record::RankInfo& lead, Run& run) {
  for (const record::StepWindow& window : lead.windows) {
    double wall_ns = 0;
    for (const int64_t ns : window.share_ns) wall_ns += static_cast<double>(ns);
    if (window.steps == 0 || wall_ns <= 0) continue;
    run.step_times_ns.push_back(wall_ns / static_cast<double>(window.steps));
    std::map<std::string, double> shares;
    for (size_t i = 0; i < record::kShareCount; ++i) {
      if (window.share_ns[i] > 0)
        shares[std::string(Name(static_cast<record::Share>(i)))] =
            static_cast<double>(window.share_ns[i]) / wall_ns;
    }
    run.shares_over_time.push_back(std::move(shares));
  }
}

}  // namespace

Run RunOf(const std::string& name, const watch::LiveRun& live) {
  Run run;
  run.name = name;
  run.path = live.path();
  run.steps = live.steps();
  const record::Stage& stage = live.window().stages.back();
  run.directory = stage.directory;
  run.running_ns = live.end_ns() - live.begin_ns();
  run.ranks = static_cast<int64_t>(stage.ranks.size());
  run.roles = RolesOf(stage);
  if (!stage.ranks.empty()) AddWindows(stage.ranks.front(), run);
  const diagnose::Diagnosis& now = live.of_window();
  run.shares = now.shares;
  run.step_ns = now.mean_step_ns;
  run.samples_per_s = now.samples_per_s;
  run.tokens_per_s = now.tokens_per_s;
  run.useful_tokens_per_s = now.useful_tokens_per_s;
  if (now.flops) run.flops_per_s = now.flops->per_s, run.mfu = now.flops->mfu;
  const std::string tokens = report::TokenRateText(now), flops = report::FlopsText(now);
  run.work = tokens + (tokens.empty() || flops.empty() ? "" : "   ") + flops;
  const bool since_start = live.of_all().steps > 0;
  for (const diagnose::Finding& finding : (since_start ? live.of_all() : now).findings) {
    run.findings.push_back(
        {finding.id, finding.title, finding.change, finding.severity == diagnose::Severity::kCritical});
  }
  if (!run.findings.empty() && (since_start || now.steps > 0)) {
    run.verdict = run.findings.front().title;
    run.critical = run.findings.front().critical;
  }
  return run;
}

std::vector<Run> RunsOf(const watch::RunsFolder& folder) {
  std::vector<Run> runs;
  for (const auto& [name, known] : folder.runs()) {
    const watch::LiveRun* live = folder.Live(name);
    if (live != nullptr && live->seen() && !live->ended()) runs.push_back(RunOf(name, *live));
  }
  return runs;
}

}  // namespace fullbore::top
