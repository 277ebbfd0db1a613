#include "explain/diagnose/device_window.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "explain/diagnose/advice.h"
#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/thresholds.h"
#include "explain/diagnose/unslowed.h"

namespace fullbore::diagnose {

namespace {

using record::Share;

constexpr size_t kOperatorsNamed = 20;

bool RestsOnDevice(const Finding& finding) {
  const auto rows = AllFindings();
  const auto row = std::ranges::find(rows, finding.id, &FindingRow::id);
  return row != rows.end() && row->rests == Rests::kOnTheDevice;
}

// Of the steps that are judged, with what the profiler cost.
double RecordedStepNs(const record::Recording& trace, const Diagnosis& diagnosis) {
  const record::Stage* stage = JudgedStage(trace);
  if (stage == nullptr || stage->ranks.empty()) return diagnosis.mean_step_ns;
  const auto& steps = stage->ranks.front().steps;
  const auto count = std::min<std::ptrdiff_t>(diagnosis.steps, std::ssize(steps));
  if (count == 0) return diagnosis.mean_step_ns;
  const int64_t all_ns =
      std::accumulate(steps.end() - count, steps.end(), int64_t{0},
                      [](int64_t sum, const record::Step& step) { return sum + step.wall_ns; });
  return static_cast<double>(all_ns) / static_cast<double>(count);
}

WindowReport ReportOf(const record::DeviceWindow& window, const record::Recording& trace,
                      const Diagnosis& diagnosis) {
  WindowReport report;
  report.first_step =
      window.first_step + diagnosis.warmup_steps;  // its first step pays for the profiler's start
  report.steps = diagnosis.steps;
  report.mean_step_ns = RecordedStepNs(trace, diagnosis);
  report.device = diagnosis.device_shares;
  if (report.device) report.shares = diagnosis.shares;
  const record::Stage* stage = JudgedStage(trace);
  const double all_ns = report.mean_step_ns * static_cast<double>(diagnosis.steps);
  if (stage == nullptr || stage->ranks.empty() || all_ns <= 0) return report;
  for (const record::OperatorTime& one : stage->ranks.front().operators) {
    if (report.operators.size() == kOperatorsNamed) break;
    const auto ns = static_cast<double>(one.sum_ns);
    std::optional<double> rate;
    if (one.flops && ns > 0) rate = *one.flops / (ns / 1e9);
    report.operators.push_back({one.name, one.count / std::max<int64_t>(1, diagnosis.steps), ns / all_ns,
                                ns / static_cast<double>(diagnosis.steps), rate});
  }
  return report;
}

// What a rank's device did in its window, beside what its host did in the whole run.
void TakeDeviceOf(const std::vector<RankShares>& window, std::vector<RankShares>& run) {
  for (RankShares& rank : run) {
    const auto same = std::ranges::find(window, rank.rank, &RankShares::rank);
    if (same == window.end()) continue;
    rank.span_ns = same->span_ns;
    rank.busy_ns = same->busy_ns;
    rank.compute_ns = same->compute_ns;
    rank.comm_ns = same->comm_ns;
    rank.comm_exposed_ns = same->comm_exposed_ns;
    rank.copy_ns = same->copy_ns;
    rank.copy_exposed_ns = same->copy_exposed_ns;
    rank.kernels = same->kernels;
    rank.comm_overlap_ratio = same->comm_overlap_ratio;
    rank.kernel_class_ns = same->kernel_class_ns;
    rank.collectives = same->collectives;
  }
}

void NoteItsCost(const fitness::Fitness& of_window, Diagnosis& run) {
  std::ranges::copy_if(of_window.conditions, std::back_inserter(run.fitness.conditions),
                       [](const fitness::Condition& condition) { return condition.id == "recorder-cost"; });
}

// Code that the host runs in each step costs what the device waits for it, by the device's clock: nothing where the device
// is busy meanwhile. Of what happens more rarely the window says nothing.
bool IsHiddenBehind(const std::map<std::string, double>& shares, const Finding& finding) {
  if (finding.id != "host-other" || finding.cause != "loop-code") return false;
  double idle = 0;
  for (const Share share : {Share::kLaunch, Share::kSync, Share::kGap, Share::kHostOther}) {
    if (const auto at = shares.find(std::string(Name(share))); at != shares.end()) idle += at->second;
  }
  return idle < kHostOther.warning;
}

}  // namespace

void AddDeviceWindow(const record::DeviceWindow& window, const record::Recording& trace,
                     const std::vector<const replay::Change*>& what_if, Diagnosis& run) {
  Diagnosis seen = Diagnose(Unslowed(trace, run.median_step_ns), "", what_if);
  if (!seen.fitness.CanBeJudged()) {
    run.not_judged.push_back({"the steps under the profiler", seen.fitness.Refusal(), ""});
    return;
  }
  if (seen.steps == 0) return;
  run.device_window = ReportOf(window, trace, seen);
  if (!seen.device_shares) return;
  NoteItsCost(seen.fitness, run);
  std::erase_if(run.findings, RestsOnDevice);
  std::erase_if(run.findings, [&](const Finding& finding) { return IsHiddenBehind(seen.shares, finding); });
  std::ranges::copy_if(std::make_move_iterator(seen.findings.begin()),
                       std::make_move_iterator(seen.findings.end()), std::back_inserter(run.findings),
                       RestsOnDevice);
  // Not the last word any more: it was said before the device was looked at.
  const auto healthy = [](const Finding& finding) { return finding.id == "healthy"; };
  std::vector<Finding> words;
  std::ranges::copy_if(run.findings, std::back_inserter(words), healthy);
  std::erase_if(run.findings, healthy);
  DropForbiddenGains(run);
  RankByGain(run.findings);
  if (NothingCostsMuch(run)) run.findings.insert(run.findings.begin(), words.begin(), words.end());
  std::erase_if(run.not_judged, [](const NotJudged& one) { return one.id == kDeviceNotSeen; });
  TakeDeviceOf(seen.ranks, run.ranks);
  run.recomputed = seen.recomputed;
  run.replay = std::move(seen.replay);
  if (const auto gpu = seen.facts.find("gpu"); gpu != seen.facts.end()) run.facts.insert(*gpu);
}

}  // namespace fullbore::diagnose
