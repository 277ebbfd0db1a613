// host-other: what the loop does besides training; compilations are judged in recompilation.cc. The hook times
// checkpoints, validation, garbage collection and forward passes without gradients; what the rest consists of is told
// by the samples of the line sampler. A gain is promised for what the advice removes, and for nothing else: a rollout,
// a wait, passes of which it is not told what they are for, or code that was not recognised is named.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "base/text.h"
#include "explain/diagnose/activity_shares.h"
#include "explain/diagnose/device_replay.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/kept_outputs.h"
#include "explain/diagnose/library_options.h"
#include "explain/diagnose/places.h"
#include "explain/diagnose/statistics.h"

namespace fullbore::diagnose {

using record::Activity;
using record::HostOther;
using record::Share;

namespace {

// The part of its share that the advice removes: what it says, at least and at most.
struct Removes {
  double expected, least, most;
};

// What remains of a step is never nothing: a thousand times as fast is the most that anything promises.
constexpr double kMostOfAStep = 0.999;

struct Kind {
  const char* cause;
  const char* does;  // "it ..."
  std::vector<std::string> fix;
  std::optional<Removes> removes;  // nothing: no gain is promised
  const char* on = "on work other than training";
};

// From this part of the step on, passes without gradients may be a policy's.
constexpr double kMayAct = 0.01;

constexpr char kOutsideItsPasses[] = "outside the training's own passes";

struct NamedKind {
  HostOther part;
  Kind kind;
};

const std::vector<NamedKind>& NamedKinds() {
  static const std::vector<NamedKind> table = {
      {HostOther::kCheckpoint,
       {"checkpoint",
        "saves checkpoints",
        {"save a quarter as often, or in the background (torch.distributed.checkpoint.async_save, or a "
         "thread that writes a CPU copy)",
         "save to fast local storage first and copy from there", "save only what a restart needs"},
        Removes{0.75, 0.5, 1}}},
      {HostOther::kValidation,
       {"validation",
        "validates",
        {"validate a quarter as often, or on a fixed sample of the validation set, and on all of it at the "
         "end",
         "validate in a job of its own from the checkpoints",
         "a larger batch and torch.inference_mode() for validation"},
        Removes{0.75, 0.5, 1}}},
      {HostOther::kGarbageCollection,
       {"garbage-collection",
        "collects garbage",
        {"gc.freeze() after start-up, gc.disable() in the loop and gc.collect() every few hundred steps",
         "find what creates so many objects: lists of tensors, per-step closures"},
        Removes{0.997, 0.8, 1}}},  // every three hundredth step
      {HostOther::kWithoutGradients,
       {"passes-without-gradients", "runs forward passes without gradients", {}, {}, kOutsideItsPasses}},
  };
  return table;
}

// One in ten remains where something is done every tenth time; as much again where a part is done in each
// step to be reported later.
constexpr Removes kEveryTenthTime = {0.9, 0.8, 0.95};

struct ActivityKind {
  Activity activity;
  Kind kind;
};

const std::vector<ActivityKind>& ActivityKinds() {
  static const std::vector<ActivityKind> table = {
      {Activity::kLogging,
       {"logging",
        "logs or prints",
        {"log every N steps, not every step: every tenth leaves a tenth of it",
         "write files and metrics from a thread; keep values as tensors until they are logged"},
        kEveryTenthTime}},
      {Activity::kPlotting,
       {"plotting",
        "draws figures",
        {"draw every N steps, or after the training from saved values", "draw in another process"},
        kEveryTenthTime}},
      {Activity::kMetrics,
       {"metrics",
        "computes metrics",
        {"compute metrics every N steps, or at the end of the epoch from what was collected",
         "keep predictions on the device, and compute there"},
        Removes{0.9, 0.5, 0.95}}},
      {Activity::kDataPreparation,
       {"data-preparation",
        "prepares data",
        {"prepare batches in a Dataset behind DataLoader(num_workers=...), beside the training",
         "prepare once, before the training, what is not random"},
        Removes{0.7, 0.4, 1}}},
      {Activity::kTokenising,
       {"tokenising",
        "turns text into tokens",
        {"tokenise once, before the training, and keep the tokens",
         "or tokenise in a Dataset behind DataLoader(num_workers=...)"},
        Removes{0.9, 0.8, 1}}},
      {Activity::kFile,
       {"files",
        "reads or writes files",
        {"write a tenth as often, or from a thread", "keep what is read again in memory"},
        Removes{0.85, 0.5, 0.95}}},
      {Activity::kNetwork,
       {"network",
        "waits for the network",
        {"send from a thread, or less often", "fetch what the next step needs while this one computes"},
        Removes{0.75, 0.5, 1}}},
      {Activity::kSubprocess,
       {"subprocess",
        "waits for a program that it started",
        {"call it a tenth as often, or start it without waiting (subprocess.Popen) and look at its result "
         "later"},
        Removes{0.9, 0.5, 1}}},
      {Activity::kSleep,
       {"sleep",
        "sleeps (time.sleep)",
        {"remove the sleep; where it waits for something, wait for that (an event, a queue) instead"},
        Removes{0.95, 0.5, 1}}},
      {Activity::kEnvironment,
       {"rollout",
        "runs the environment and samples actions, which is this program's own work",
        {},
        {},
        kOutsideItsPasses}},
      {Activity::kQueue, {"queue", "waits for a queue or a pipe", {}, {}}},
      {Activity::kLock, {"lock", "waits for a lock or another thread", {}, {}}},
      {Activity::kFuture, {"future", "waits for a future", {}, {}}},
      {Activity::kPython, {"loop-code", "runs Python code of its own between the steps", {}, {}}},
      {Activity::kUnknown, {"loop-code", "runs other code between the steps", {}, {}}},
  };
  return table;
}

const Kind& KindOf(Activity activity) {
  const auto& table = ActivityKinds();
  const auto at = std::find_if(table.begin(), table.end(),
                               [&](const ActivityKind& row) { return row.activity == activity; });
  return at == table.end() ? table.back().kind : at->kind;
}

// Where the hook sees compiled functions only, or no modules: operations of JAX, or on plain tensors, may be the
// training's own.
const Kind& Unseen() {
  static const Kind kind = {
      "not-seen",
      "runs code that may compute: the hook does not see operations that are called one by one",
      {},
      {},
      "outside what is seen of its computation"};
  return kind;
}

bool MayComputeUnseen(const View& view) {
  return view.Fact("framework") == "jax" || view.Fact("computes_unseen") == "true";
}

// One thing that the loop does, timed by the hook or sampled.
struct Part {
  const Kind* kind;
  std::optional<HostOther> named;
  Sampled of_step;
  int64_t samples = 0;  // 0: it was timed
  std::vector<Place> where;
  std::string library;
  Sampled collections{0, 0, 0};  // of the step: garbage collections that its objects set off
};

// What validation costs beyond the host's part: its work on the device, which the steps' shares count as computation
// and copies. A ratio of the step.
double ValidationOnDevice(const RankView& rank) {
  const double on_host = rank.Ratio(HostOther::kValidation);
  return on_host > 0 ? std::max(0.0, SavedBy(rank, "validation") - on_host) : 0;
}

// Whether it happens in a rollout, too: what a program waits for there, or does in lines of its own, is its environment,
// which may run in other processes. All else has a name and a cure of its own.
bool BelongsToRollout(const Part& part) {
  if (part.named) return *part.named == HostOther::kWithoutGradients;
  for (const Activity activity : {Activity::kQueue, Activity::kFuture, Activity::kLock, Activity::kUnknown,
                                  Activity::kPython, Activity::kDataPreparation}) {
    if (part.kind == &KindOf(activity)) return true;
  }
  return false;
}

// In a loop with an environment, passes without gradients act in it, and it answers what the loop waits to receive.
void JoinRollout(const View& view, std::vector<Part>& parts) {
  const auto plays = std::ranges::find_if(
      parts, [](const Part& part) { return part.kind == &KindOf(Activity::kEnvironment); });
  if (plays == parts.end() || !PlaysInAnEnvironment(view.lead())) return;
  Part rollout = *plays;
  const double answers = WaitForEnvironments(view.lead());
  for (double* ratio : {&rollout.of_step.ratio, &rollout.of_step.low, &rollout.of_step.high})
    *ratio += answers;
  for (const Part& part : parts) {
    if (!BelongsToRollout(part)) continue;
    rollout.of_step.ratio += part.of_step.ratio;
    rollout.of_step.low += part.of_step.low;
    rollout.of_step.high = std::min(1.0, rollout.of_step.high + part.of_step.high);
    rollout.samples += part.samples;
  }
  for (Place& place : rollout.where) place.share *= plays->of_step.ratio / rollout.of_step.ratio;
  if (answers > 0) {
    for (Place place : view.HottestLines(Share::kDataWait)) {
      place.share /= rollout.of_step.ratio;
      rollout.where.push_back(std::move(place));
    }
    std::ranges::stable_sort(rollout.where, std::greater(), &Place::share);
  }
  std::erase_if(parts, [&](const Part& part) { return part.kind == rollout.kind || BelongsToRollout(part); });
  parts.push_back(std::move(rollout));
}

// What makes objects by the thousand, when it is done.
bool MakesObjects(Activity activity) {
  return activity == Activity::kLogging || activity == Activity::kPlotting ||
         activity == Activity::kMetrics || activity == Activity::kFile ||
         activity == Activity::kDataPreparation;
}

// Of the step: garbage collections that make steps slow.
double CollectionsInSlowSteps(const RankView& rank) {
  const auto gc = static_cast<size_t>(HostOther::kGarbageCollection);
  std::vector<double> wall_ns;
  for (const record::Step* step : rank.steady) wall_ns.push_back(static_cast<double>(step->wall_ns));
  if (wall_ns.empty()) return 0;
  const double slow_ns = record::kSlowStep * Median(std::move(wall_ns));
  double in_slow_ns = 0, all_ns = 0;
  for (const record::Step* step : rank.steady) {
    const auto ns = static_cast<double>(step->host_other_ns[gc]);
    all_ns += ns;
    if (static_cast<double>(step->wall_ns) >= slow_ns) in_slow_ns += ns;
  }
  return all_ns > 0 ? rank.Ratio(HostOther::kGarbageCollection) * in_slow_ns / all_ns : 0;
}

// Python collects garbage where objects are made, which holds up the sampler: its next sample, in the same slow step, is
// of the line that made them. So much of the collections goes with what stands there.
Sampled CollectionsBy(const RankView& rank, const ActivityShare& share) {
  int64_t slow_samples = 0;
  for (const record::HotLine& line : rank.info->hot_lines) slow_samples += line.slow_samples;
  if (!MakesObjects(share.activity) || slow_samples == 0) return {0, 0, 0};
  const double collections = CollectionsInSlowSteps(rank);
  const Sampled of_them = SampledRatio(share.slow_samples, slow_samples);
  return {of_them.ratio * collections, of_them.low * collections, of_them.high * collections};
}

double WithoutCompilation(const RankView& rank) {
  return rank.Ratio(Share::kHostOther) - rank.Ratio(HostOther::kCompilation);
}

// Largest first. Where samples do not tell whether code without a name takes more than something that has a cure, that one.
void PutInOrder(std::vector<Part>& parts) {
  std::ranges::stable_sort(parts, std::greater(), [](const Part& part) { return part.of_step.ratio; });
  if (parts.empty() || parts.front().kind->removes) return;
  const double least = parts.front().of_step.low;
  const auto curable = std::ranges::find_if(
      parts, [&](const Part& part) { return part.kind->removes && part.of_step.ratio > least; });
  if (curable != parts.end()) std::rotate(parts.begin(), curable, curable + 1);
}

std::vector<Part> PartsOf(const View& view, double on_device) {
  const RankView& rank = view.lead();
  std::vector<Part> parts;
  for (const NamedKind& row : NamedKinds()) {
    const double ratio = rank.Ratio(row.part) + (row.part == HostOther::kValidation ? on_device : 0);
    if (ratio > 0) parts.push_back({&row.kind, row.part, {ratio, ratio, ratio}, 0, {}, ""});
  }
  std::vector<ActivityShare> shares = ActivitySharesOf(rank);
  const double unnamed = rank.Ratio(HostOther::kUnnamed);
  if (shares.empty() && (unnamed > 0 || parts.empty())) {
    const double rest = parts.empty() ? WithoutCompilation(rank) : unnamed;
    parts.push_back({&KindOf(Activity::kUnknown), HostOther::kUnnamed, {rest, rest, rest}, 0, {}, ""});
  }
  for (ActivityShare& share : shares) {
    parts.push_back({&KindOf(share.activity), std::nullopt, share.of_step, share.samples,
                     std::move(share.where), std::move(share.library), CollectionsBy(rank, share)});
  }
  JoinRollout(view, parts);
  if (MayComputeUnseen(view)) {
    for (Part& part : parts) {
      if (part.kind == &KindOf(Activity::kUnknown)) part.kind = &Unseen();
    }
  }
  PutInOrder(parts);
  return parts;
}

// "most of it at train.py:70", "31 % of it at train.py:70"; empty without a place.
std::string AtItsLine(const Part& part) {
  if (part.where.empty()) return "";
  const Place& place = part.where.front();
  const std::string of_it = place.share > 0.5 ? "most" : FormatPercent(place.share);
  return fmt::format("{} of it at {}", of_it, NameOf(place));
}

// The hottest lines of it, with their shares of the step.
std::vector<Place> PlacesOf(const Part& part) {
  constexpr size_t kMost = 3;
  std::vector<Place> places = part.where;
  if (places.size() > kMost) places.resize(kMost);
  for (Place& place : places) place.share *= part.of_step.ratio;
  return places;
}

// Threads that a pause has put to sleep are woken by the next operations: without it, the rest takes this part of the
// time, and at best the second; from the even seeds 36, 38, 44, 50, 116, 122 and 194 of the exam (docs/accuracy.md).
constexpr double kRestOfAPool = 0.85, kRestOfAPoolAtBest = 0.35;

Speedup GainOf(const View& view, const Part& part) {
  const Removes removes = *part.kind->removes;
  const bool pool = view.ComputesOnCpu() && ParseInt(view.Fact("torch_threads").value_or("")).value_or(1) > 1;
  const auto without = [&](double ratio, double rest) {
    return 1 / (1 - std::min(ratio, kMostOfAStep)) / (pool ? rest : 1);
  };
  const Sampled &step = part.of_step, &collections = part.collections;
  return {without((step.ratio + collections.ratio) * removes.expected, kRestOfAPool),
          without((step.low + collections.low) * removes.least, 1),
          without((step.high + collections.high) * removes.most, kRestOfAPoolAtBest)};
}

// Work that moves to other processes needs cores for them.
bool HasRoomFor(const View& view, const Part& part) {
  if (part.kind != &KindOf(Activity::kDataPreparation)) return true;
  const auto used = view.CoresOfCommand();
  return used && view.cores() - *used - view.CoresOfOthers().value_or(0) >= kIdleCores;
}

void AddEvidence(const View& view, const std::vector<Part>& parts, const EvidenceBuilder& evidence) {
  const RankView& rank = view.lead();
  int64_t samples = 0;
  for (const Part& part : parts) {
    std::string what = part.named ? std::string(Name(*part.named)) : std::string(part.kind->cause);
    evidence.FromHook(std::move(what), part.of_step.ratio, "ratio");
    samples += part.samples;
  }
  if (samples > 0)
    evidence.FromHook("samples of what has no name of its own", static_cast<double>(samples), "count");
  if (parts.empty() || !parts.front().named || rank.steady.empty()) return;
  const auto part = static_cast<size_t>(*parts.front().named);
  const auto steps_with = std::ranges::count_if(rank.steady, [&](const record::Step* step) {
    return step->host_other_ns[part] >
           static_cast<int64_t>(kOtherInStep * static_cast<double>(step->wall_ns));
  });
  evidence.FromHook("steps in which it takes more than 5 %",
                    static_cast<double>(steps_with) / static_cast<double>(rank.steady.size()), "ratio");
}

// What a program that plays prepares comes from its environment: no worker can know it before. Passes without gradients
// may act in one, too, of which nothing else is seen.
bool IsFromTheEnvironment(const std::vector<Part>& parts, const Part& part) {
  if (part.kind != &KindOf(Activity::kDataPreparation)) return false;
  const bool may_act = std::ranges::any_of(parts, [](const Part& other) {
    return other.named == HostOther::kWithoutGradients && other.of_step.ratio >= kMayAct;
  });
  return may_act || parts.front().kind == &KindOf(Activity::kEnvironment);
}

// Own code at one line may be a report or a part of the training, which no sample tells: what it would bring to do it
// less often is said, not promised.
void SayWhatItWouldBring(const Part& part, Finding& finding) {
  if (part.kind != &KindOf(Activity::kPython) || part.of_step.ratio < kHostOther.warning) return;
  if (part.where.empty() || part.where.front().share <= 0.5) return;
  const Place& place = part.where.front();
  const double removed = part.of_step.ratio * place.share * kEveryTenthTime.expected;
  finding.fix.push_back(
      fmt::format("if what {} computes is only reported, doing it every tenth step would make the run "
                  "about {:.2f}x as fast",
                  NameOf(place), 1 / (1 - removed)));
}

// "(6 %, most of it at train.py:70)"
std::string ShareAndLine(const Part& part) {
  const std::string at = AtItsLine(part);
  return fmt::format("({}{})", FormatPercent(part.of_step.ratio), at.empty() ? "" : ", " + at);
}

void SayAlso(const Part& part, Finding& finding) {
  ReplaceFullStop(finding.title, fmt::format("; it also {} {}.", part.kind->does, ShareAndLine(part)));
}

// What the advice is for, where that is not the largest part.
void NameToo(const Part& part, Finding& finding) {
  SayAlso(part, finding);
  std::vector<Place> places = PlacesOf(part);
  if (!places.empty()) finding.where.insert(finding.where.begin(), places.front());
}

// Whether that is the largest part of which something is advised.
bool IsAboutValidation(const std::vector<Part>& parts) {
  const auto advised =
      std::ranges::find_if(parts, [](const Part& part) { return part.kind->removes.has_value(); });
  return advised != parts.end() && advised->named == HostOther::kValidation;
}

// Whether the part is what one step alone spent its time on: a program that was started once, a file read.
bool CameOnce(const RankView& rank, const Part& part) {
  constexpr double kMost = 0.8;
  constexpr auto kUnnamed = static_cast<size_t>(HostOther::kUnnamed);
  if (part.samples == 0 || 2 * part.of_step.ratio < rank.Ratio(HostOther::kUnnamed)) return false;
  int64_t longest_ns = 0;
  for (const record::Step* step : rank.steady)
    longest_ns = std::max(longest_ns, step->host_other_ns[kUnnamed]);
  return static_cast<double>(longest_ns) >= kMost * static_cast<double>(rank.host_other_ns[kUnnamed]);
}

// The gain of the largest part that its advice makes smaller.
void Promise(const View& view, const std::vector<Part>& parts, Finding& finding) {
  for (const Part& part : parts) {
    if (!part.kind->removes || part.of_step.ratio < kHostOther.warning) continue;
    if (IsFromTheEnvironment(parts, part)) continue;
    finding.fix = part.kind->fix;
    if (&part != &parts.front()) NameToo(part, finding);
    if (CameOnce(view.lead(), part)) {
      finding.fix = {fmt::format("it came once in {} steps: the longer a run, the less it takes of it",
                                 FormatCount(static_cast<double>(view.lead().steps)))};
      return;
    }
    if (!HasRoomFor(view, part)) {
      finding.fix = {part.kind->fix.back(),
                     "no core is idle for loader workers, which alone would gain nothing"};
      return;
    }
    finding.speedup = GainOf(view, part);
    const Removes removes = *part.kind->removes;
    finding.method = fmt::format("{} to {} of the {} removed", FormatPercent(removes.least),
                                 FormatPercent(removes.most), part.kind->cause);
    if (part.samples > 0) {
      finding.method += fmt::format("; its share, {} to {} of the step, is told from {} samples",
                                    FormatPercent(part.of_step.low), FormatPercent(part.of_step.high),
                                    FormatCount(static_cast<double>(part.samples)));
    }
    if (part.collections.ratio >= kHostOther.warning) {
      finding.method += fmt::format("; so are garbage collections that its objects set off, {} of the step",
                                    FormatPercent(part.collections.ratio));
    }
    return;
  }
  SayWhatItWouldBring(parts.front(), finding);
}

}  // namespace

std::optional<Finding> JudgeHostOther(const View& view, Diagnosis& /*diagnosis*/) {
  const RankView& rank = view.lead();
  const double on_device = ValidationOnDevice(rank);
  const double share = WithoutCompilation(rank) + on_device + WaitForEnvironments(rank);
  const auto severity = SeverityOf(share, kHostOther, rank.steps);
  if (!severity) return std::nullopt;
  const std::vector<Part> parts = PartsOf(view, on_device);
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.severity = *severity;
  finding.share = share;
  const Part& first = parts.front();
  finding.cause = first.kind->cause;
  const std::string there =
      on_device > 0 ? fmt::format(", {} on the device", FormatPercent(on_device)) : std::string();
  finding.title = fmt::format("The loop spends {} of the time{} {}: it {} {}.", FormatPercent(share), there,
                              first.kind->on, first.kind->does, ShareAndLine(first));
  if (parts.size() > 1 && parts[1].of_step.ratio > first.of_step.ratio) SayAlso(parts[1], finding);
  finding.where = PlacesOf(first);
  if (finding.where.empty()) finding.where = view.HottestLines(Share::kHostOther);
  Promise(view, parts, finding);
  AddEvidence(view, parts, evidence);
  if (IsAboutValidation(parts)) SayWhatIsKept(view, finding);
  if (const std::string option = OptionOf(first.library, first.kind->cause); !option.empty()) {
    finding.fix.insert(finding.fix.begin(), option);
  }
  if (const auto rule = DeviceAgainstCpu(view)) finding.fix.push_back(*rule);
  return finding;
}

}  // namespace fullbore::diagnose
