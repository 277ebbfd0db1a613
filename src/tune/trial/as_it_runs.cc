#include "tune/trial/as_it_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/secrets.h"
#include "base/text.h"
#include "explain/diagnose/diagnose.h"
#include "tune/trial/throughput.h"
#include "tune/trial/trial.h"

namespace fullbore::tune {

namespace {

constexpr double kLeastDifference = 0.05;  // of the rate: less is not worth a sentence

struct Steady {
  Estimate estimate;
  record::ShareTimes step_ns{};  // of the first rank, the mean of the steady steps
};

std::optional<Steady> SteadyOf(const record::Recording& recording) {
  const record::Stage* stage = diagnose::JudgedStage(recording);
  if (stage == nullptr || stage->ranks.empty()) return std::nullopt;
  Throughput throughput;
  for (const record::RankInfo& rank : stage->ranks) {
    for (const record::Step& step : rank.steps) throughput.Add(rank.rank, step, PreparedBatches(rank));
  }
  const auto estimate = throughput.Steady();
  if (!estimate) return std::nullopt;
  Steady steady{*estimate, {}};
  const auto& steps = stage->ranks.front().steps;
  const size_t first = std::min(steps.size(), static_cast<size_t>(estimate->warmup_steps));
  for (size_t i = first; i < steps.size(); ++i) {
    for (size_t share = 0; share < record::kShareCount; ++share)
      steady.step_ns[share] += steps[i].share_ns[share];
  }
  for (int64_t& ns : steady.step_ns) ns /= std::max<int64_t>(1, static_cast<int64_t>(steps.size() - first));
  return steady;
}

// As far as the recordings tell: the machine, the model, its batches.
bool IsSameProgram(const record::Recording& run, const record::Recording& trial) {
  for (const char* what : {"hostname", "cpu_model", "cores", "gpu0"}) {
    const auto there = run.machine.find(what), here = trial.machine.find(what);
    if ((there == run.machine.end()) != (here == trial.machine.end())) return false;
    if (there != run.machine.end() && there->second != here->second) return false;
  }
  const record::Stage *outside = diagnose::JudgedStage(run), *inside = diagnose::JudgedStage(trial);
  if (outside == nullptr || inside == nullptr || outside->ranks.size() != inside->ranks.size()) return false;
  for (size_t i = 0; i < outside->ranks.size(); ++i) {
    const record::RankInfo &there = outside->ranks[i], &here = inside->ranks[i];
    if (there.device != here.device) return false;
    for (const char* what :
         {"torch", "model", "parameters", "batch_shape", "parameter_dtype", "torch_threads"}) {
      const auto a = there.facts.find(what), b = here.facts.find(what);
      if (a != there.facts.end() && b != here.facts.end() && a->second != b->second) return false;
    }
  }
  return true;
}

}  // namespace

bool IsRunOf(const record::RunSummary& run, const std::vector<std::string>& command,
             const std::string& directory) {
  constexpr int kInterrupted = 130;
  if (!run.tags.empty() || run.stages.empty()) return false;
  const record::Stage& stage = run.stages.back();
  return stage.command == MaskSecrets(command) && stage.directory == directory &&
         (stage.exit_status == 0 || stage.exit_status == kInterrupted);
}

std::optional<std::string> DifferenceFromRun(const record::Recording& run, const record::Recording& trial) {
  if (!IsSameProgram(run, trial)) return std::nullopt;
  const auto outside = SteadyOf(run), inside = SteadyOf(trial);
  if (!outside || !inside) return std::nullopt;
  const Estimate &there = outside->estimate, &here = inside->estimate;
  if (there.counts_samples != here.counts_samples || there.rate <= 0 || here.rate <= 0) return std::nullopt;
  const double unsure = std::hypot(there.HalfWidth(), here.HalfWidth());
  if (std::abs(std::log(here.rate / there.rate)) < std::max(kLeastDifference, unsure)) return std::nullopt;
  const auto apart = [&](size_t share) { return std::abs(inside->step_ns[share] - outside->step_ns[share]); };
  size_t most = 0;
  for (size_t share = 1; share < record::kShareCount; ++share) {
    if (apart(share) > apart(most)) most = share;
  }
  const std::string_view unit = here.counts_samples ? kSamplesPerSecond : kStepsPerSecond;
  return fmt::format(
      "A trial of the script as it is reaches {} {}, while run {} of the same command reached {}. Most of the "
      "difference is in {}: {} a step in that run, and {} in the trial. Either writing to another place, as "
      "trials do, takes another time, or other programs ran beside one of the two, or the script was changed.",
      FormatCount(here.rate), unit, run.id, FormatCount(there.rate),
      record::Name(static_cast<record::Share>(most)), FormatDuration(outside->step_ns[most]),
      FormatDuration(inside->step_ns[most]));
}

}  // namespace fullbore::tune
