#include "explain/diagnose/device_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "explain/diagnose/comm_words.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/program.h"
#include "explain/diagnose/quotes.h"
#include "explain/replay/ranks.h"
#include "explain/replay/simulate.h"

namespace fullbore::diagnose {

using record::StepGraph;
using replay::Change;

namespace {

// A change that gains less than this is not worth a line.
constexpr double kMinGain = 1.01;

// How a change is made in PyTorch: in short, and in a sentence.
struct InCode {
  std::string_view id, change, fix;
};
constexpr std::array kInCode = {
    InCode{"workers", "DataLoader(num_workers=...)",
           "load in worker processes: DataLoader(num_workers=...), as many as keep the device from waiting"},
    InCode{"pin", "DataLoader(pin_memory=True)",
           "DataLoader(pin_memory=True) and tensor.to(device, non_blocking=True): the host does not wait for "
           "the copy"},
    InCode{"side-stream", "", "copy the next batch on a side stream while this one is computed"},
    InCode{"bytes", "", "send uint8 and convert on the device: a quarter of the bytes"},
    InCode{"no-sync", "",
           "log every N steps: each .item(), .cpu(), print(tensor) stops the host until the device is done, "
           "and so does GradScaler.step unless the optimizer is fused"},
    InCode{"precision", "", "run matrix products in 16 bit or TF32, on tensor cores"},
    InCode{"straggler", "", "give every rank the same work, and look at what delays the last one"},
};

// Others are made in other words in each program; the allocator's finding has its own.
Words CodeOf(const Change& change, const Program& program) {
  if (change.id() == "compile") return ToCompile(program);
  if (change.id() == "graphs") return ToUseGraphs(program);
  if (change.id() == "fused-optimizer") return ToFuseTheOptimizer(program);
  if (change.id() == "overlap") return ToOverlap(program);
  if (change.id() == "comm") return ToSendLess(program);
  const auto found = std::ranges::find(kInCode, change.id(), &InCode::id);
  return found == kInCode.end() ? Words{} : Words{std::string(found->change), std::string(found->fix)};
}

// The graphs of the rank and of those that it meets in collectives; empty where its own cannot be replayed.
std::vector<const StepGraph*> Replayable(const RankView& rank) {
  const StepGraph* graph = ReplayableGraph(rank);
  return graph == nullptr ? std::vector<const StepGraph*>() : replay::RanksAround(*graph, rank.graphs);
}

Speedup SpeedupOf(const std::vector<const StepGraph*>& ranks, const replay::Prediction& step) {
  const double now_ns = replay::StepNs(replay::Ranks(ranks));
  return {now_ns / step.expected_ns, now_ns / step.cautious_ns, now_ns / std::max(1.0, step.hopeful_ns)};
}

void TakeGain(const Change& change, const Speedup& gain, Finding& finding) {
  finding.speedup = gain;
  finding.costs = change.cost();
  finding.quotes = change.id();
  finding.quoted = finding.speedup;
}

Rung RungOf(const std::vector<const StepGraph*>& ranks, const Change& change,
            const replay::Prediction& step) {
  Rung rung;
  rung.change = change.id();
  rung.does = change.does();
  rung.assumes = change.assumes();
  rung.costs = Name(change.cost());
  rung.step_ns = step.expected_ns;
  rung.speedup = SpeedupOf(ranks, step);
  for (const replay::ClassTime& time : replay::TimesByClass(*ranks.front(), change)) {
    rung.classes.push_back({std::string(record::Name(time.lane)), time.now_ns, time.then.expected_ns,
                            time.then.hopeful_ns, time.then.cautious_ns});
  }
  return rung;
}

// Why the recording does not allow to say what the change would gain; nothing if it does. How the same kernels do on
// another device does not depend on which of the steps were recorded.
std::optional<std::string> WhyForbidden(const Change& change, const fitness::Fitness& fitness) {
  const bool elsewhere = change.id().starts_with(replay::kDevicePrefix);
  const fitness::Condition* why =
      fitness.WhyNot(elsewhere ? fitness::Conclusion::kAnything : fitness::Conclusion::kWhatIf);
  if (why == nullptr) return std::nullopt;
  return "nothing is predicted from this recording: " + why->says;
}

}  // namespace

const StepGraph* ReplayableGraph(const RankView& rank) {
  if (rank.steps == 0 || !rank.info->graph) return nullptr;
  const StepGraph& graph = *rank.info->graph;
  const bool usable = replay::StepNs(graph) > 0 && replay::ReplayError(graph) <= replay::kTooRough;
  return usable ? &graph : nullptr;
}

std::optional<Speedup> GainOf(const RankView& rank, const std::vector<const Change*>& changes) {
  const auto ranks = Replayable(rank);
  if (ranks.empty()) return std::nullopt;
  return SpeedupOf(ranks, replay::Predict(ranks, changes));
}

double SavedBy(const RankView& rank, std::string_view change) {
  const auto ranks = Replayable(rank);
  const Change* made = replay::ChangeNamed(change);
  if (ranks.empty() || made == nullptr || replay::WhyNot(*made, ranks)) return 0;
  return std::max(0.0, 1 - replay::Predict(ranks, {made}).expected_ns / replay::StepNs(replay::Ranks(ranks)));
}

bool Quote(const RankView& rank, std::string_view id, std::string method, Finding& finding) {
  const auto ranks = Replayable(rank);
  const Change* change = replay::ChangeNamed(id);
  if (ranks.empty() || change == nullptr || replay::WhyNot(*change, ranks)) return false;
  TakeGain(*change, SpeedupOf(ranks, replay::Predict(ranks, {change})), finding);
  finding.method = std::move(method);
  return true;
}

bool AdviseBest(const RankView& rank, std::initializer_list<std::string_view> changes, Finding& finding) {
  const auto ranks = Replayable(rank);
  if (ranks.empty()) return false;
  struct Option {
    const Change* change;
    Speedup gain;
  };
  std::vector<Option> options;
  for (const std::string_view id : changes) {
    const Change* change = replay::ChangeNamed(id);
    if (change == nullptr || replay::WhyNot(*change, ranks)) continue;
    const Speedup gain = SpeedupOf(ranks, replay::Predict(ranks, {change}));
    if (gain.expected >= kMinGain) options.push_back({change, gain});
  }
  if (options.empty()) return false;
  std::ranges::stable_sort(options, [](const Option& a, const Option& b) {
    return a.gain.low != b.gain.low ? a.gain.low > b.gain.low : a.change->cost() < b.change->cost();
  });
  const Program program = ProgramOf(*rank.info);
  std::vector<std::string> fix;
  for (const Option& option : options) {
    if (Words words = CodeOf(*option.change, program); !words.fix.empty())
      fix.push_back(std::move(words.fix));
  }
  const Option& best = options.front();
  if (Words words = CodeOf(*best.change, program); !words.fix.empty())
    finding.change = std::move(words.change);
  for (std::string& other : finding.fix) {
    if (std::ranges::find(fix, other) == fix.end()) fix.push_back(std::move(other));
  }
  finding.fix = std::move(fix);
  TakeGain(*best.change, best.gain, finding);
  finding.method = fmt::format("the recorded steps run again so that {}; assumes {}", best.change->does(),
                               best.change->assumes());
  return true;
}

std::optional<ReplayReport> ReportOf(const RankView& rank, const std::vector<const Change*>& what_if,
                                     const fitness::Fitness& fitness, const std::vector<Finding>& findings) {
  if (rank.steps == 0 || !rank.info->graph) return std::nullopt;
  const StepGraph& graph = *rank.info->graph;
  if (replay::StepNs(graph) <= 0) return std::nullopt;
  ReplayReport report;
  const auto ranks = Replayable(rank);
  report.error = ranks.empty() ? replay::ReplayError(graph) : replay::ReplayError(ranks);
  report.assumed = graph.assumed;
  report.device = graph.device;
  report.unexplained =
      replay::PerStepNs(graph,
                        [](const StepGraph::Node& node) { return node.work == record::Work::kUnexplained; }) /
      replay::StepNs(graph);
  report.rough = report.error > replay::kRough;
  report.predicts = report.error <= replay::kTooRough;
  if (!report.predicts) return report;
  if (!fitness.Forbids(fitness::Conclusion::kGains)) {
    const std::vector<std::string> taken_back = TakenBack(findings);
    for (const replay::Rung& rung : replay::Ladder(ranks, taken_back))
      report.ladder.push_back(RungOf(ranks, *rung.change, rung.step));
  }
  std::vector<const Change*> made;
  for (const Change* change : what_if) {
    auto why = WhyForbidden(*change, fitness);
    if (!why) why = replay::WhyNot(*change, ranks);
    if (why) {
      report.refused.push_back({std::string(change->id()), *why});
      continue;
    }
    made.push_back(change);
    report.what_if.push_back(RungOf(ranks, *change, replay::Predict(ranks, made)));
  }
  QuoteFindings(findings, report.ladder);
  QuoteFindings(findings, report.what_if);
  return report;
}

}  // namespace fullbore::diagnose
