#include "explain/diagnose/judge/input_bound/elsewhere.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/text.h"
#include "explain/diagnose/advice.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/input_bound/feed.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/places.h"
#include "record/json_text.h"

namespace fullbore::diagnose {

using record::HotLine;
using record::Metric;
using record::Share;

namespace {

const record::Labels kOtherProcesses = {{"role", "other"}};

// How the steps wait, in samples of the training thread.
struct Waits {
  int64_t queued = 0;  // for a queue or a pipe, which another process may fill ahead
  int64_t asked = 0;   // for the answer to a question
  int64_t rest = 0;    // for other data
  int64_t beside = 0;  // not fed: what else the loop did
  std::string peer;    // "127.0.0.1:8000", that is asked; empty where unknown
  std::vector<Place> where;

  int64_t elsewhere() const { return queued + asked; }
  bool asks() const { return asked > queued; }
};

// The lines that the hook saw wait for another process.
std::set<std::pair<std::string, int>> LinesFedBy(const nlohmann::json& fed_by, std::string& peer) {
  std::set<std::pair<std::string, int>> lines;
  if (!fed_by.is_array()) return lines;
  for (const nlohmann::json& one : fed_by) {
    const auto text = [&](const char* key) {
      return one.contains(key) && one[key].is_string() ? one[key].get<std::string>() : "";
    };
    lines.emplace(text("file"), static_cast<int>(std::clamp(record::NumberIn(one, "line"), 0.0, 1e9)));
    if (peer.empty()) peer = text("peer");
  }
  return lines;
}

Waits WaitsOf(const View& view) {
  Waits waits;
  const auto lines = LinesFedBy(record::ParseJson(view.Fact("fed_by").value_or("")), waits.peer);
  if (lines.empty()) return waits;
  const auto is_elsewhere = [&](const HotLine& line) {
    return line.share == Share::kDataWait && !line.in_iterator && lines.contains({line.file, line.line});
  };
  double all = 0;
  for (const HotLine& line : view.lead().info->hot_lines) {
    all += static_cast<double>(line.samples);
    if (line.share == Share::kHostOther && line.part == record::HostOther::kUnnamed)
      waits.beside += line.samples;
    if (line.share != Share::kDataWait) continue;
    const bool queued = line.activity == record::Activity::kQueue;
    (!is_elsewhere(line) ? waits.rest : queued ? waits.queued : waits.asked) += line.samples;
  }
  waits.where = PlacesOf(view.lead().info->hot_lines, is_elsewhere, all);
  return waits;
}

// Those of the command that may be the ones that are waited for: no loader, and not what started the training.
std::vector<const record::Process*> ProcessesBeside(const View& view) {
  const std::vector<record::Process>& all = view.stage().processes;
  std::set<int64_t> starters;
  for (const record::Process& process : all) {
    if (process.role != "other") starters.insert(process.parent_pid);
  }
  std::vector<const record::Process*> beside;
  for (const record::Process& process : all) {
    const bool lives =
        process.begin_ns < view.end_ns() && (process.end_ns == 0 || process.end_ns > view.begin_ns());
    const bool helper = process.command.find("multiprocessing.resource_tracker") != std::string::npos;
    if (process.role == "other" && lives && !helper && !starters.contains(process.pid))
      beside.push_back(&process);
  }
  return beside;
}

// What one side takes for a batch, next to the other.
struct Balance {
  double make_ns = 0, train_ns = 0;

  double ratio() const { return make_ns / std::max(1.0, train_ns); }
};

// Who is asked works while the training waits; who fills a queue that runs dry works all the time.
Balance BalanceOf(const Waits& waits, double share, double step_ns) {
  const double train_ns = std::max(0.01, 1 - share) * step_ns;
  return {waits.asks() ? share * step_ns : step_ns, train_ns};
}

// So many of it, and how many keep up with the training. More than eight times as many is no advice.
struct Makers {
  int64_t now = 1, wanted = 1;
};
constexpr double kMostMakers = 8;
Makers MakersOf(const Balance& balance, size_t processes) {
  const auto now = static_cast<int64_t>(std::max<size_t>(1, processes));
  const double wanted = std::ceil(static_cast<double>(now) * std::min(balance.ratio(), kMostMakers) - 0.05);
  return {now, std::max<int64_t>(now + 1, std::llround(wanted))};
}

// Of the training's time on a core and on its way there, in which other programs were in the way: all of it if unknown.
double WaitForCores(const View& view) {
  const record::Labels trainer = {{"role", "trainer"}};
  const auto waits = view.Mean(Metric::kProcessRunDelay, trainer),
             works = view.Mean(Metric::kProcessCpu, trainer);
  if (!waits || !works || *waits + *works <= 0) return 1;
  return *waits / (*waits + *works);
}

// What the training had when it did not wait, it can have again, whoever else wants the cores.
double CoresWhileItTrains(const replay::Pipeline& pipeline) {
  double train_ns = 0;
  for (const double ns : pipeline.consume_ns)
    train_ns += ns / static_cast<double>(pipeline.consume_ns.size());
  return pipeline.train_cpu_ns / std::max(1.0, train_ns);
}

// With as many as keep up; or where it is asked, asked while the training computes. Who takes from a pipe may also have
// asked before, so that nothing was made meanwhile: that is the low end.
std::optional<Speedup> GainAt(const View& view, const Waits& waits, const Makers& makers, double share) {
  const double step_ns = view.lead().MeanStepNs();
  const double cpu_ns = view.Mean(Metric::kProcessCpu, kOtherProcesses).value_or(0) * step_ns;
  const Feeder feeder = waits.asks() ? Feeder::kTrainingThread : Feeder::kProducer;
  auto pipeline = PipelineOfFeed(view, feeder, waits.asks() ? share * step_ns : step_ns, cpu_ns,
                                 WaitForCores(view), share);
  if (!pipeline) return std::nullopt;
  pipeline->cores = std::max(pipeline->cores, CoresWhileItTrains(*pipeline));
  if (waits.asks()) return PredictSpeedup(step_ns, WithWorkers(*pipeline, 1));
  pipeline->workers = makers.now;
  for (double& ns : pipeline->fetch_ns) ns *= static_cast<double>(makers.now);
  Speedup gain = PredictSpeedup(step_ns, WithWorkers(*pipeline, makers.wanted));
  const double left = static_cast<double>(makers.now) / static_cast<double>(makers.wanted);
  gain.low = std::min(gain.low, 1 / (1 - share * (1 - left)));
  return gain;
}

// The share is sampled: the range covers that, too.
std::optional<Speedup> GainOf(const View& view, const Waits& waits, const Makers& makers, Sampled share) {
  const auto gain = [&](double ratio) { return GainAt(view, waits, makers, std::min(ratio, kMostOfAStep)); };
  const auto low = gain(share.low), expected = gain(share.ratio), high = gain(share.high);
  if (!low || !expected || !high) return std::nullopt;
  return Speedup{expected->expected, std::min(low->low, expected->low), std::max(high->high, expected->high)};
}

// "for what another process makes", "for the answers of 127.0.0.1:8000"
std::string WaitedFor(const Waits& waits) {
  if (!waits.asks()) return "for what another process makes";
  return fmt::format("for the answers of {}", waits.peer.empty() ? "another process" : waits.peer);
}

// What is answered may be the samples of a step, or nothing but that something was received.
const char* WhatTakes(const Waits& waits) {
  return waits.asks() ? "the answers of a step take" : "making a batch takes";
}

std::string TitleOf(const Finding& finding, const Waits& waits, const Balance& balance) {
  const std::string at = finding.where.empty() ? "" : " at " + NameOf(finding.where.front());
  return fmt::format("Training waits {} of the time{} {}: {} {}, {} {}, {:.1f} to one.",
                     FormatPercent(finding.share), at, WaitedFor(waits), WhatTakes(waits),
                     FormatDuration(std::llround(balance.make_ns)),
                     waits.asks() ? "the rest of it" : "training on it",
                     FormatDuration(std::llround(balance.train_ns)), balance.ratio());
}

std::vector<std::string> FixesOf(const Waits& waits, const Balance& balance, const Makers& makers) {
  const std::string more = fmt::format(
      "{} such processes instead of {}, each with a core or a device of its own, keep up with the training",
      makers.wanted, makers.now);
  if (!waits.asks()) return {more};
  std::vector<std::string> fixes = {
      "send the question for the next batch before training on this one, and take its answer afterwards: both "
      "sides then work at once, and what is made is one step older"};
  if (balance.ratio() > 1) fixes.push_back("and " + more);
  fixes.emplace_back(
      "where it is a report that is answered, send it from a thread: nothing is trained on it");
  return fixes;
}

// Of a process on this machine, as far as the command started it.
void AddProcesses(const View& view, const std::vector<const record::Process*>& beside,
                  const EvidenceBuilder& evidence) {
  std::string who = "other processes of this run";
  if (beside.size() == 1)
    who = fmt::format("the other process of this run, {}: {}", beside.front()->pid, beside.front()->command);
  if (beside.empty()) return;
  evidence.FromSeries(Metric::kProcessCpu, kOtherProcesses, "CPU of " + who,
                      view.Mean(Metric::kProcessCpu, kOtherProcesses));
  evidence.FromMachine("other processes of this run", static_cast<double>(beside.size()), "count");
}

void Predict(const View& view, const Waits& waits, const Makers& makers, Finding& finding) {
  const Sampled share = ShareOfFeed(view.lead(), waits.elsewhere(), waits.beside);
  const auto gain = GainOf(view, waits, makers, share);
  if (!gain || !IsWorthwhile(*gain)) {
    finding.fix.push_back("no core of this machine is idle for it: it needs another one, or a device");
    return;
  }
  finding.speedup = *gain;
  finding.costs = replay::Cost::kMemory;
  finding.method = fmt::format(
      "replay of the recorded steps with {}, on the cores that are left; the share of the wait, {} to {} of "
      "the step, is told from {} samples",
      waits.asks() ? "batches that are made while the training computes"
                   : fmt::format("{} such processes instead of {}", makers.wanted, makers.now),
      FormatPercent(share.low), FormatPercent(share.high),
      FormatCount(static_cast<double>(waits.elsewhere() + waits.beside)));
}

// Passes without gradients in the loop may be a policy's, whose actions an environment in another process answers.
constexpr double kMayAct = 0.01;

}  // namespace

std::optional<Finding> FromElsewhere(const View& view, Finding finding, Diagnosis& diagnosis) {
  const RankView& rank = view.lead();
  const Waits waits = WaitsOf(view);
  if (waits.elsewhere() <= waits.rest) return std::nullopt;
  const double step_ns = rank.MeanStepNs();
  const auto beside = ProcessesBeside(view);
  const Balance balance = BalanceOf(waits, std::min(finding.share, kMostOfAStep), step_ns);
  const Makers makers = MakersOf(balance, beside.size());
  const EvidenceBuilder evidence(finding);
  finding.cause = "rollout-elsewhere";
  if (!waits.where.empty()) finding.where = waits.where;
  finding.title = TitleOf(finding, waits, balance);
  finding.fix = FixesOf(waits, balance, makers);
  evidence.FromHook("the training waits", finding.share * step_ns / 1e6, "ms per step");
  evidence.FromHook(WhatTakes(waits), balance.make_ns / 1e6, "ms");
  evidence.FromHook("training on it takes", balance.train_ns / 1e6, "ms");
  evidence.FromHook("samples of the training thread that saw it wait for another process",
                    static_cast<double>(waits.elsewhere()), "count");
  AddProcesses(view, beside, evidence);
  if (rank.Ratio(record::HostOther::kWithoutGradients) >= kMayAct) {
    finding.fix.insert(finding.fix.begin(),
                       "where that is an environment's answer to an action, it is this program's own work");
  } else {
    Predict(view, waits, makers, finding);
  }
  PointAtWorstStep(rank, Share::kDataWait, finding);
  diagnosis.not_judged.push_back({"what limits the process that makes the batches",
                                  "only the waits for it can be seen from here",
                                  "fullbore run, or the profiler of its engine, around that process"});
  return finding;
}

}  // namespace fullbore::diagnose
