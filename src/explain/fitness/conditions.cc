#include "explain/fitness/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "explain/fitness/thresholds.h"

namespace fullbore::fitness {

namespace {

using enum Conclusion;

constexpr char kRecordWarmSteps[] =
    "Record twenty steps after a few that warm up, each marked by profiler.step(): "
    "torch.profiler.schedule(wait=5, "
    "warmup=3, active=20).";

std::string Count(int64_t count) { return FormatCount(static_cast<double>(count)); }

double Ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// ---- of the recording ----

std::optional<Condition> BreaksOff(const Known& known) {
  if (!known.noticed.breaks_off_at) return std::nullopt;
  const int64_t at = *known.noticed.breaks_off_at;
  return Condition{
      "breaks-off",
      fmt::format("The file breaks off at byte {}: only what precedes it is judged.", Count(at)),
      static_cast<double>(at),
      "bytes",
      {kGains, kWhatIf},
      "Copy it again once the profiler has written it: the file was not complete, or its disk was full."};
}

double RanNothing(const Known& known) {
  return known.noticed.launches < kFewestLaunches ? 0
                                                  : Ratio(known.noticed.ran_nothing, known.noticed.launches);
}

std::optional<Condition> LeftOut(const Known& known) {
  const int64_t all = std::max(known.events, known.operations + known.noticed.left_out);
  const double part = Ratio(known.noticed.left_out, all);
  if (part < kSomeLeftOut) return std::nullopt;
  Condition condition{
      "left-out",
      fmt::format("{} of {} events ({}) have no usable time and are left out.", Count(known.noticed.left_out),
                  Count(all), FormatPercent(part)),
      part,
      "ratio",
      {kGains, kWhatIf, kHealthy},
      "Record again, for a shorter time: a profiler whose buffers are full writes times of 0."};
  if (known.device && RanNothing(known) >= kSomeRanNothing) condition.forbids.push_back(kIdleTime);
  return condition;
}

std::optional<Condition> Cut(const Known& known) {
  if (known.noticed.cut <= 0) return std::nullopt;
  return Condition{
      "cut",
      fmt::format(
          "{} operations were recorded longer than until the next one on their stream began; they are "
          "counted up to it.",
          Count(known.noticed.cut)),
      static_cast<double>(known.noticed.cut),
      "count",
      {},
      ""};
}

std::optional<Condition> ClockAhead(const Known& known) {
  const int64_t off_ns = known.noticed.clock_ahead_ns.value_or(0);
  if (std::abs(off_ns) < kClockOffNs) return std::nullopt;
  const std::string how = fmt::format("By the host's clock, the device's times are {} too {}",
                                      FormatDuration(std::abs(off_ns)), off_ns > 0 ? "early" : "late");
  if (known.noticed.clock_corrected)
    return Condition{"clock", how + "; they are corrected by that.", static_cast<double>(off_ns), "ns", {},
                     ""};
  return Condition{"clock",
                   how + ": what the device waited for cannot be told.",
                   static_cast<double>(off_ns),
                   "ns",
                   {kGains, kWhatIf, kIdleTime, kHealthy},
                   "Record again; if it stays, with another version of the profiler."};
}

std::optional<Condition> NoOperations(const Known& known) {
  if (known.live || known.device || known.noticed.launches < kFewestLaunches) return std::nullopt;
  return Condition{
      "no-device-activity",
      fmt::format("{} launches, and no operation of a device was recorded.", Count(known.noticed.launches)),
      static_cast<double>(known.noticed.launches),
      "count",
      {kAnything, kIdleTime, kRates},
      "Record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], no other profiler beside it, "
      "and permission to use the device's counters."};
}

// Steps that are left out because launches in them ran nothing, where they are the smaller part: of a recording most of
// which is left out, what remains is not the program.
int64_t LeftOutSteps(const Known& known) {
  const int64_t left_out = known.bare_steps + known.noticed.bare_steps;
  return left_out <= known.steps ? left_out : 0;
}

// The launches outside the stretches that are left out.
struct Launches {
  int64_t all = 0, ran_nothing = 0;
};
Launches Judged(const Known& known) {
  Launches judged{known.noticed.launches, known.noticed.ran_nothing};
  if (LeftOutSteps(known) == 0) return judged;
  for (const record::Noticed::Stretch& bare : known.noticed.bare) {
    judged.all -= bare.launches;
    judged.ran_nothing -= bare.ran_nothing;
  }
  // A launch may count for several stretches.
  judged.ran_nothing = std::max<int64_t>(0, judged.ran_nothing);
  judged.all = std::max(judged.ran_nothing, judged.all);
  return judged;
}

std::optional<Condition> LaunchesWithoutKernels(const Known& known) {
  if (!known.device || known.noticed.launches < kFewestLaunches) return std::nullopt;
  if (known.noticed.ran_nothing <= known.noticed.left_out) return std::nullopt;  // what they ran is left out
  const Launches judged = Judged(known);
  const double part = Ratio(judged.ran_nothing, judged.all);
  const std::string what =
      fmt::format("{} of {} launches ran nothing", Count(judged.ran_nothing), Count(judged.all));
  if (part < kSomeRanNothing) return std::nullopt;
  const bool captures = known.noticed.captures > 0;
  Condition condition{"launches-without-kernels", what, part, "ratio", {}, ""};
  condition.mend =
      captures ? "Record the replays: torch.profiler.schedule(wait=...) with as many steps as the capture "
                 "and what precedes it take."
               : "Record without CUDA graphs, or with a newer CUPTI or ROCm, which records what graphs "
                 "run; and let the profiler warm up for a few steps first.";
  if (part >= kMostRanNothing) {
    condition.says += captures ? " (a CUDA graph is being captured)." : ": their kernels were not recorded.";
    condition.forbids = {kAnything, kIdleTime, kRates};
  } else {
    condition.says += ": their kernels are missing, and the device may have worked where it seems idle.";
    condition.forbids = {kGains, kWhatIf, kIdleTime, kHealthy};
  }
  return condition;
}

std::optional<Condition> BareStretch(const Known& known) {
  if (known.noticed.bare.empty() || !known.device) return std::nullopt;
  const int64_t left_out = LeftOutSteps(known);
  if (left_out == 0 && LaunchesWithoutKernels(known)) return std::nullopt;  // said by that one
  if (known.noticed.ran_nothing <= known.noticed.left_out && left_out == 0) return std::nullopt;
  int64_t bare_ns = 0;
  for (const record::Noticed::Stretch& bare : known.noticed.bare) bare_ns += bare.end_ns - bare.begin_ns;
  if (Ratio(bare_ns, known.noticed.span_ns) < kBareCounts && left_out == 0) return std::nullopt;
  const std::string what = fmt::format(
      "In {} of the recording launches ran nothing ({} of {}): the device was not idle there, its kernels "
      "were not recorded",
      FormatDuration(bare_ns), Count(known.noticed.ran_nothing), Count(known.noticed.launches));
  Condition condition{
      "bare-stretch", "", static_cast<double>(bare_ns), "ns", {kGains, kWhatIf, kHealthy}, ""};
  condition.mend = "Let the profiler warm up for a few steps: the first kernels are lost while it starts.";
  if (left_out > 0) {
    condition.says =
        fmt::format("{}; {} {} left out.", what, left_out == 1 ? "one step" : Count(left_out) + " steps",
                    left_out == 1 ? "is" : "are");
  } else {
    condition.says = what + ".";
    condition.forbids.push_back(kIdleTime);
  }
  return condition;
}

std::optional<Condition> SeveralDevices(const Known& known) {
  if (known.noticed.devices < 2) return std::nullopt;
  return Condition{
      "several-devices",
      fmt::format(
          "One process used {} devices: the busiest is judged alone, and what it waits for in the others "
          "is not.",
          Count(known.noticed.devices)),
      static_cast<double>(known.noticed.devices),
      "count",
      {kGains, kWhatIf, kHealthy},
      "With one process a device (torchrun), each has a trace of its own."};
}

// ---- of the steps ----

std::optional<Condition> TooEarly(const Known& known) {
  if (!known.live || known.doubt.sampled || known.steps <= 0 || known.steps >= kFewestSteps ||
      known.wall_ns >= kEarlyNs)
    return std::nullopt;
  return Condition{"too-early",
                   fmt::format("{} in {}, which may be nothing like those that follow.",
                               known.steps == 1 ? "One step" : Count(known.steps) + " steps",
                               FormatDuration(known.wall_ns)),
                   static_cast<double>(known.steps),
                   "steps",
                   {kAnything},
                   "Let it run for twenty steps or more."};
}

std::optional<Condition> TooLittle(const Known& known) {
  const bool marked = known.noticed.steps_by != record::StepsBy::kNothing;
  if (known.live || !known.device || marked || known.shapes || known.steps > 1 ||
      known.kernels >= kFewestKernels)
    return std::nullopt;
  return Condition{
      "too-little",
      fmt::format("{} kernels in {} are all that was recorded, and no step is marked.",
                  known.kernels == 1 ? "One kernel" : Count(known.kernels), FormatDuration(known.wall_ns)),
      static_cast<double>(known.kernels),
      "count",
      {kAnything, kRates},
      kRecordWarmSteps};
}

std::optional<Condition> SingleStep(const Known& known) {
  if (known.steps != 1 || known.doubt.sampled) return std::nullopt;
  Condition condition{"single-step", "", 1, "steps", {kGains, kWhatIf, kHealthy}, ""};
  condition.mend = known.live ? "Let it run for twenty steps or more." : kRecordWarmSteps;
  if (known.live || !known.device || known.noticed.steps_by != record::StepsBy::kNothing) {
    condition.says =
        "Too early for a verdict: only one step counts, its figures may be an accident, and no gain is "
        "predicted from it.";
  } else {
    condition.says =
        "Too early for a verdict: no step is marked and nothing repeats, so that all of it is one stretch, "
        "from which no gain is predicted.";
    condition.forbids.push_back(kRates);
  }
  return condition;
}

std::optional<Condition> NotTrainingSteps(const Known& known) {
  const bool periods = known.device && known.noticed.steps_by == record::StepsBy::kPeriod && known.steps > 1;
  const std::string& engine = known.noticed.engine;
  const bool iterations = !engine.empty() && !known.noticed.served.empty();  // by its own marks
  if (known.live || iterations || (!periods && engine.empty())) return std::nullopt;
  Condition condition{"not-training-steps", "", static_cast<double>(known.steps), "steps", {kRates}, ""};
  if (!engine.empty()) {
    condition.says = fmt::format("What repeats {} times are requests or layers of {}, not training steps.",
                                 Count(known.steps), engine);
  } else {
    condition.says = fmt::format("No step is marked: what repeats {} times may be steps, layers or requests.",
                                 Count(known.steps));
    condition.mend = "Call profiler.step() after each step.";
  }
  return condition;
}

std::optional<Condition> Cold(const Known& known) {
  if (known.live || known.noticed.cold_calls <= 0 || known.wall_ns <= 0) return std::nullopt;
  const int64_t cold_ns = std::max<int64_t>(0, known.noticed.cold_ns - known.warmup_ns);
  const double part = std::min(1.0, Ratio(cold_ns, known.wall_ns));
  if (part < kColdCounts) return std::nullopt;
  Condition condition{
      "cold",
      fmt::format(
          "{} took a hundred times as long as others of {} kind, {} of the time: modules and libraries were "
          "being loaded.",
          known.noticed.cold_calls == 1 ? "One call" : Count(known.noticed.cold_calls) + " calls",
          known.noticed.cold_calls == 1 ? "its" : "their", FormatPercent(part)),
      part,
      "ratio",
      {kGains, kWhatIf, kHealthy},
      kRecordWarmSteps};
  if (part >= kMostlyCold) condition.forbids = {kAnything, kRates};
  return condition;
}

std::optional<Condition> StepsCover(const Known& known) {
  if (known.live || known.noticed.stepped_ns <= 0 || known.noticed.span_ns <= 0) return std::nullopt;
  const double part = Ratio(known.noticed.stepped_ns, known.noticed.span_ns);
  if (part >= kCovered) return std::nullopt;
  Condition condition{
      "steps-cover",
      fmt::format("The steps cover {} of the time from the device's first operation to its last.",
                  FormatPercent(part)),
      part,
      "ratio",
      {},
      "Mark every step that is recorded, by profiler.step() after each."};
  if (part < kMostlyCovered) condition.forbids = {kGains, kWhatIf, kHealthy};
  return condition;
}

std::optional<Condition> EmptySteps(const Known& known) {
  if (known.noticed.empty_steps <= 0) return std::nullopt;
  return Condition{
      "empty-steps",
      fmt::format("{} at the end of the recording, in which the device did nothing, {} left out.",
                  known.noticed.empty_steps == 1 ? "One step" : Count(known.noticed.empty_steps) + " steps",
                  known.noticed.empty_steps == 1 ? "is" : "are"),
      static_cast<double>(known.noticed.empty_steps),
      "steps",
      {},
      ""};
}

std::optional<Condition> Missed(const Known& known) {
  const int64_t all_ns = known.warmup_ns + known.wall_ns + known.missed_ns;
  const double part = Ratio(known.missed_ns, all_ns);
  if (part < kSomeLeftOut) return std::nullopt;
  return Condition{
      "missed-steps",
      fmt::format("Events came faster than the recorder could read them: {} of {} of steps are left out.",
                  FormatDuration(known.missed_ns), FormatDuration(all_ns)),
      part,
      "ratio",
      {},
      "Leave the recorder a part of a core."};
}

std::optional<Condition> WorkKnown(const Known& known) {
  if (!known.work_known || *known.work_known >= kCovered) return std::nullopt;
  Condition condition{
      "work-known",
      fmt::format("The work of {} of the device's time is known.", FormatPercent(*known.work_known)),
      *known.work_known,
      "ratio",
      {},
      "Record with record_shapes=True; kernels of your own and compiled ones remain unknown."};
  if (*known.work_known < kWorkKnown) condition.forbids = {kOfTheDevice};
  return condition;
}

std::optional<Condition> Slowed(const Known& known) {
  if (!known.noticed.slowed || *known.noticed.slowed < kSlowed) return std::nullopt;
  return Condition{
      "recorder-cost",
      fmt::format("Under its profiler a step took {} longer than without: so much is left out of what the "
                  "host and its launches cost there.",
                  FormatPercent(*known.noticed.slowed - 1)),
      *known.noticed.slowed,
      "ratio",
      {},
      ""};
}

// Predictions are made without that cost, and their ranges are open for it: nothing is forbidden.
std::optional<Condition> Watched(const Known& known) {
  if (!known.unwatched || known.unwatched->recorded_ns < kSlowed * known.unwatched->expected_ns)
    return std::nullopt;
  const Known::Unwatched& step = *known.unwatched;
  return Condition{
      "recorder-cost",
      fmt::format(
          "The profiler is part of the recorded steps: without it one of {} takes an estimated {} to {}.",
          FormatDuration(static_cast<int64_t>(step.recorded_ns)),
          FormatDuration(static_cast<int64_t>(step.least_ns)),
          FormatDuration(static_cast<int64_t>(step.most_ns))),
      step.recorded_ns / step.expected_ns,
      "ratio",
      {},
      "Time some steps without the profiler: what they take is what a change has to beat."};
}

std::optional<Condition> Noisy(const Known& known) {
  const Doubt& doubt = known.doubt;
  const bool wide = doubt.of_mean_step >= kNoisy && !doubt.sampled;
  if (!doubt.contended_cores && !wide) return std::nullopt;
  const std::string mean =
      fmt::format("the mean step is only known to ±{}", FormatPercent(doubt.of_mean_step));
  std::string text = doubt.contended_cores
                         ? fmt::format("Noisy: other programs keep {} of {} cores busy{}",
                                       FormatCount(*doubt.contended_cores), FormatCount(doubt.cores),
                                       wide ? ", and " + mean : "")
                         : fmt::format("Noisy: steps vary so much that {}", mean);
  const bool drowns = doubt.of_mean_step >= kTooNoisy;
  text += drowns ? "; a gain smaller than that cannot be told." : ". Take every figure with that in mind.";
  return Condition{"noise",
                   text,
                   doubt.of_mean_step,
                   "ratio",
                   drowns ? std::vector{kSmallGains} : std::vector<Conclusion>{},
                   drowns ? "Measure again when the machine is quiet." : ""};
}

constexpr Judge kOfTheRecording[] = {
    NoOperations, LaunchesWithoutKernels, BareStretch, BreaksOff, LeftOut, ClockAhead, Cut, SeveralDevices};
constexpr Judge kOfTheSteps[] = {TooLittle,  TooEarly, SingleStep, Cold,   NotTrainingSteps, StepsCover,
                                 EmptySteps, Missed,   WorkKnown,  Slowed, Watched,          Noisy};

}  // namespace

std::span<const Judge> OfTheRecording() { return kOfTheRecording; }
std::span<const Judge> OfTheSteps() { return kOfTheSteps; }

}  // namespace fullbore::fitness
