// unstable-steps: some steps take far longer than usual, and no other finding says why. What grows in them is seen, and
// when they come; why is only said where something recorded shows it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/noise.h"
#include "explain/diagnose/statistics.h"

namespace fullbore::diagnose {

using record::HostOther;
using record::Share;
using record::Step;

namespace {

// A share, a part or a wait is what grows where it is at least this much of the extra time: most of it.
constexpr double kMostOfExcess = 0.6;
// The size of a batch explains its step's time where it explains half of the variance, and the slow ones are larger.
constexpr double kFollowsSize = 0.7;  // correlation
constexpr double kLargerBatch = 1.3;
// A period: so many slow steps have one at the same distance, these are this part of all, and those distances cover this
// part of the way from the first slow step to the last. Where less than half of the steps are slow, at random, every
// second one covers less than half of it.
constexpr size_t kInPeriod = 4;
constexpr double kMostOfSlow = 0.6, kMostOfWay = 0.6;
// Samples of slow steps, before anything is told from them.
constexpr double kSamplesOfSlow = 5;
constexpr size_t kMostPlaces = 3;
constexpr double kWorthNaming = 0.2;  // of the samples of the line that has most
// Half as often is the least that "less often" may mean.
constexpr double kHalfAsOften = 0.5;

// The steps that take twice the median or more, against the others.
struct Slow {
  std::vector<const Step*> steps, usual;
  double median_ns = 0;
  double excess_ns = 0;  // over the median
  std::array<double, record::kShareCount>
      grows{};  // over the mean of the usual steps, all slow steps together
  std::array<double, record::kHostOtherCount> within{};  // the same of the parts of host_other

  Share Most() const { return static_cast<Share>(std::ranges::max_element(grows) - grows.begin()); }
  double Grows(Share share) const { return grows[Index(share)]; }
  double PerUsual() const {
    return static_cast<double>(steps.size()) / static_cast<double>(std::max<size_t>(1, usual.size()));
  }
  double Grown() const {
    double all = 0;
    for (const double ns : grows) all += std::max(0.0, ns);
    return all;
  }
  bool IsMost(double ns) const { return ns >= kMostOfExcess * Grown(); }
};

Slow SlowSteps(const RankView& rank, double median_ns) {
  Slow slow;
  slow.median_ns = median_ns;
  for (const Step* step : rank.steady)
    (static_cast<double>(step->wall_ns) < kUnstable * median_ns ? slow.usual : slow.steps).push_back(step);
  const auto add = [&](const Step& step, double weight) {
    for (size_t i = 0; i < record::kShareCount; ++i)
      slow.grows[i] += weight * static_cast<double>(step.share_ns[i]);
    for (size_t i = 0; i < record::kHostOtherCount; ++i)
      slow.within[i] += weight * static_cast<double>(step.host_other_ns[i]);
  };
  for (const Step* step : slow.steps) {
    add(*step, 1);
    slow.excess_ns += static_cast<double>(step->wall_ns) - median_ns;
  }
  for (const Step* step : slow.usual) add(*step, -slow.PerUsual());
  return slow;
}

// What comes once in so many steps.
struct Period {
  int64_t steps = 0;     // 0: nothing does
  double slow_ns = 0;    // the mean of the steps in which it comes,
  double others_ns = 0;  // and of all others
  double part = 0;       // of all steps: those in which it comes

  // Of the time, what the slow steps take more than the others.
  double Share() const {
    const double more = std::max(0.0, slow_ns - others_ns) * part;
    return more / (others_ns + more);
  }
};

double MeanNs(const std::vector<const Step*>& steps) {
  double sum = 0;
  for (const Step* step : steps) sum += static_cast<double>(step->wall_ns);
  return sum / static_cast<double>(std::max<size_t>(1, steps.size()));
}

// The distance from one slow step to the next that occurs most often, where most slow steps have another one there, and
// they come so all the way, not in groups.
Period PeriodOf(const Slow& slow) {
  std::map<int64_t, int64_t> distances;
  std::set<int64_t> indices;
  for (size_t i = 0; i < slow.steps.size(); ++i) {
    indices.insert(slow.steps[i]->index);
    if (i > 0) ++distances[slow.steps[i]->index - slow.steps[i - 1]->index];
  }
  if (distances.empty()) return {};
  const int64_t usual =
      std::ranges::max_element(distances, {}, [](const auto& one) { return one.second; })->first;
  std::vector<const Step*> in_period, others = slow.usual;
  int64_t covered = 0;
  for (const Step* step : slow.steps) {
    const bool goes_on = indices.contains(step->index + usual);
    if (goes_on) covered += usual;
    (goes_on || indices.contains(step->index - usual) ? in_period : others).push_back(step);
  }
  const int64_t way = slow.steps.back()->index - slow.steps.front()->index;
  const bool all_the_way = static_cast<double>(covered) >= kMostOfWay * static_cast<double>(way);
  const bool most =
      static_cast<double>(in_period.size()) >= kMostOfSlow * static_cast<double>(slow.steps.size());
  if (usual < 2 || !most || !all_the_way || in_period.size() <= kInPeriod || others.empty()) return {};
  const double part =
      static_cast<double>(in_period.size()) / static_cast<double>(in_period.size() + others.size());
  return {usual, MeanNs(in_period), MeanNs(others), part};
}

// The lines that run in slow steps, with the samples that are more than the same number of other steps have.
struct SlowLines {
  double all = 0;      // such samples
  double watches = 0;  // of them, where something is only reported
  std::vector<Place> where;
};

// What reports on the training, and is not of it.
bool Watches(record::Activity activity) {
  using record::Activity;
  constexpr std::array kWatching = {Activity::kHook,      Activity::kLogging, Activity::kPlotting,
                                    Activity::kMetrics,   Activity::kFile,    Activity::kNetwork,
                                    Activity::kSubprocess};
  return std::ranges::find(kWatching, activity) != kWatching.end();
}

SlowLines LinesOfSlowSteps(const RankView& rank, double slow_per_usual) {
  SlowLines found;
  std::vector<record::HotLine> more;
  for (record::HotLine line : rank.info->hot_lines) {
    const double usual = static_cast<double>(line.samples - line.slow_samples) * slow_per_usual;
    const double excess = static_cast<double>(line.slow_samples) - usual;
    if (excess <= 0) continue;
    found.all += excess;
    if (Watches(line.activity)) found.watches += excess;
    line.samples = std::llround(excess);
    if (line.samples > 0) more.push_back(std::move(line));
  }
  int64_t samples = 0;
  for (const record::HotLine& line : rank.info->hot_lines) samples += line.samples;
  found.where = PlacesOf(
      more, [](const record::HotLine&) { return true; }, static_cast<double>(samples));
  const double least = found.where.empty() ? 0 : kWorthNaming * found.where.front().share;
  std::erase_if(found.where, [&](const Place& place) { return place.share < least; });
  if (found.where.size() > kMostPlaces) found.where.resize(kMostPlaces);
  if (found.all < kSamplesOfSlow) return {};
  return found;
}

// Of a batch of the step: one that takes more of them (the rest of an accumulation, batches for the statistics of
// averaged weights) has no larger ones for that.
int64_t BatchElements(const Step& step) { return step.elements / std::max<int64_t>(1, step.batches); }

// Whether steps take the longer the larger their batch is. The wait for a batch does not count: its size is the
// loader's work, too.
bool FollowsSize(const RankView& rank, const Slow& slow) {
  std::vector<double> sizes, ns;
  for (const Step* step : rank.steady) {
    if (step->elements <= 0) return false;
    sizes.push_back(static_cast<double>(BatchElements(*step)));
    ns.push_back(static_cast<double>(step->wall_ns - step->share_ns[Index(Share::kDataWait)]));
  }
  const auto line = LineThrough(sizes, ns);
  if (!line || line->correlation < kFollowsSize || slow.usual.empty()) return false;
  const auto mean = [](const std::vector<const Step*>& steps) {
    double sum = 0;
    for (const Step* step : steps) sum += static_cast<double>(BatchElements(*step));
    return sum / static_cast<double>(steps.size());
  };
  return mean(slow.steps) >= kLargerBatch * mean(slow.usual);
}

// Whether the waits of the slow steps are those at the start of an epoch.
bool BeginEpochs(const RankView& rank, const Slow& slow) {
  const record::Loader* loader = rank.TrainingLoader();
  if (loader == nullptr || loader->restarts == 0 || !slow.IsMost(slow.Grows(Share::kDataWait))) return false;
  const bool as_many = slow.steps.size() <= static_cast<size_t>(2 * loader->restarts + 1);
  return as_many &&
         static_cast<double>(loader->restart_wait_ns) >= kMostOfExcess * slow.Grows(Share::kDataWait);
}

struct Why {
  std::string cause;
  std::string words;             // of the title, after what grows
  std::vector<std::string> fix;  // empty where none is known
  bool sure = false;             // the cause, and that the fix mends it
  std::string told_by, as;       // the finding that says the same, and its cause
  std::vector<Place> where{};    // of the slow steps; empty where no sample tells
  Period period{};               // in which they come
};

std::optional<Why> OfHostOther(const Slow& slow) {
  const auto grows = [&](HostOther part) { return slow.IsMost(slow.within[static_cast<size_t>(part)]); };
  if (grows(HostOther::kCheckpoint))
    return Why{"checkpoint",
               "in them the script saves a checkpoint",
               {"save less often, or beside the training"},
               false,
               "host-other",
               "checkpoint"};
  if (grows(HostOther::kValidation))
    return Why{"evaluation", "in them a model is called in evaluation mode or its loader asked",
               {},           false,
               "host-other", "validation"};
  if (grows(HostOther::kGarbageCollection))
    return Why{"garbage-collection",
               "in them Python's garbage collector runs",
               {"gc.freeze() after the first steps, or gc.disable() and gc.collect() between epochs"},
               false,
               "host-other",
               "garbage-collection"};
  if (grows(HostOther::kWithoutGradients))
    return Why{
        "passes-without-gradients", "in them a model is called without gradients", {}, false, "host-other",
        "passes-without-gradients"};
  if (grows(HostOther::kCompilation))
    return Why{"compilation", "in them something is compiled", {}, false, "recompilation", ""};
  return std::nullopt;
}

// Once in so many steps: what reports need not come so often; what is not known to report may be a part of the training,
// as a penalty or the turn of another network is.
Why OfPeriod(const RankView& rank, const Slow& slow, const Period& period) {
  Why why;
  why.cause = "periodic";
  why.period = period;
  why.words = fmt::format("each comes {} steps after the one before", period.steps);
  if (slow.IsMost(slow.Grows(Share::kDataWait))) {  // workers that deliver in turn
    why.told_by = "input-bound";
    return why;
  }
  SlowLines lines = LinesOfSlowSteps(rank, slow.PerUsual());
  why.where = std::move(lines.where);
  why.sure = !why.where.empty() && lines.watches >= kMostOfExcess * lines.all;
  if (why.sure) {
    why.fix = {fmt::format(
        "do less often what comes once in {} steps, histograms, norms or logs: once in {} leaves a "
        "tenth of it",
        period.steps, 10 * period.steps)};
    if (slow.IsMost(slow.Grows(Share::kHostOther))) why.told_by = "host-other";
  } else {
    why.fix = {fmt::format(
        "look at what comes once in {} steps: what only reports (logging, histograms, saving) may "
        "come less often; a part of the training stays",
        period.steps)};
  }
  return why;
}

// What recorded facts show, the most specific first.
Why Explain(const View& view, const Slow& slow) {
  const RankView& rank = view.lead();
  if (auto part = OfHostOther(slow)) return *part;
  if (BeginEpochs(rank, slow)) return {"epoch-start", "they begin epochs", {}, false, "input-bound", ""};
  if (FollowsSize(rank, slow))
    return {"shapes",
            "the larger the batch, the longer its step",
            {"bucket samples by length, so that a batch holds alike ones, or pad to a few fixed sizes",
             "Lightning, plain PyTorch: a batch_sampler that sorts by length; Hugging Face: "
             "train_sampling_strategy=\"group_by_length\" (before Transformers 5 group_by_length=True)"},
            true,
            "",
            ""};
  if (const Period period = PeriodOf(slow); period.steps > 0) return OfPeriod(rank, slow, period);
  const SlowLines lines = LinesOfSlowSteps(rank, slow.PerUsual());
  const bool watches = lines.all > 0 && lines.watches >= kMostOfExcess * lines.all;
  if (watches && slow.IsMost(slow.Grows(Share::kHostOther)))
    return {"",         "in them the loop does something beside the training", {}, false, "host-other", "",
            lines.where};
  if (watches)
    return {
        "",         "in them the passes call what is hooked into them", {}, false, "instrumentation", "hooks",
        lines.where};
  const auto others = DoubtOf(view).contended_cores;
  if (others && !slow.IsMost(slow.Grows(Share::kDataWait)))
    return {"other-programs",
            fmt::format("they come irregularly while other programs keep {} of {} cores busy",
                        FormatCount(*others), FormatCount(view.cores())),
            {"measure again when the machine is quiet"},
            false,
            "",
            ""};
  return {"", "why is not known", {}, false, "", ""};
}

// Of steps that come from something another finding names: each cause is named once.
bool IsToldBy(const Diagnosis& diagnosis, const Why& why) {
  return std::ranges::any_of(diagnosis.findings, [&](const Finding& finding) {
    return finding.id == why.told_by && (why.as.empty() || finding.cause == why.as);
  });
}

void AddEvidence(const RankView& rank, const Slow& slow, double p99, Finding& finding) {
  const EvidenceBuilder evidence(finding);
  evidence.FromSteps(rank, "99th percentile over median", p99 / slow.median_ns, "ratio");
  evidence.FromSteps(rank, "slow steps", static_cast<double>(slow.steps.size()), "count");
  evidence.FromSteps(rank, fmt::format("of their extra time in {}", Name(slow.Most())),
                     slow.Grows(slow.Most()) / std::max(1.0, slow.Grown()), "ratio");
  if (slow.steps.size() > 2) {
    evidence.FromSteps(rank, "steps from one slow step to the next, on average",
                       static_cast<double>(slow.steps.back()->index - slow.steps.front()->index) /
                           static_cast<double>(slow.steps.size() - 1),
                       "count");
  }
}

// What is reported on the training once in so many steps, at these lines: what it takes is what these steps take more
// than the others.
Finding OfReports(const Why& why, const Finding* instrumentation, Finding finding) {
  const Period& period = why.period;
  finding.share = period.Share();
  finding.severity = SeverityOf(finding.share, kHostOther, kStepsForCritical).value_or(Severity::kInfo);
  finding.title = fmt::format(
      "Every {} steps one takes {}, against {} for the others: what runs in it, most of all at {}, takes {} "
      "of the time.",
      period.steps, FormatDuration(std::llround(period.slow_ns)),
      FormatDuration(std::llround(period.others_ns)), NamesOf(why.where), FormatPercent(finding.share));
  finding.fix = why.fix;
  finding.where = why.where;
  finding.speedup = RemovalOf(finding.share, kHalfAsOften);
  finding.method = "what these steps take more than the others, done half as often to never";
  const bool same = instrumentation && kMostOfExcess * instrumentation->share <= finding.share;
  if (same) finding.supersedes.push_back({"instrumentation", "hooks"});
  return finding;
}

}  // namespace

std::optional<Finding> JudgeUnstableSteps(const View& view, Diagnosis& diagnosis) {
  const RankView& rank = view.lead();
  std::vector<double> wall_ns;
  for (const Step* step : rank.steady) wall_ns.push_back(static_cast<double>(step->wall_ns));
  if (wall_ns.size() < static_cast<size_t>(kStepsForCritical)) return std::nullopt;
  const double median = Median(wall_ns), p99 = Quantile(wall_ns, 0.99);
  if (median <= 0 || p99 / median < kUnstable) return std::nullopt;
  const Slow slow = SlowSteps(rank, median);
  const Share most = slow.Most();
  // Steps that are only launched are short, until one of them waits for all: their own time is not known.
  if (most == Share::kSync && !rank.info->device_activity) return std::nullopt;
  Why why = Explain(view, slow);
  if (IsToldBy(diagnosis, why)) return std::nullopt;

  Finding finding;
  finding.cause = why.cause;
  finding.share = std::min(slow.excess_ns / static_cast<double>(rank.wall_ns), 1.0);
  AddEvidence(rank, slow, p99, finding);
  if (why.sure && why.period.steps > 0)
    return OfReports(why, FindingWithId(diagnosis, "instrumentation"), std::move(finding));
  finding.open = !why.sure;
  finding.of_others = why.cause == "other-programs";
  finding.severity = why.sure && finding.share >= kHostOther.warning ? Severity::kWarning : Severity::kInfo;
  finding.title = fmt::format(
      "Steps are uneven: one in a hundred takes {} or more, against a median of {}; the slow ones spend the "
      "extra time in {}, and {}.",
      FormatDuration(static_cast<int64_t>(p99)), FormatDuration(static_cast<int64_t>(median)), Name(most),
      why.words);
  // How much less they would take is not known, so nothing is promised.
  finding.fix = std::move(why.fix);
  finding.fix.push_back("the report's chart of steps shows when the slow ones come");
  finding.where = why.where.empty() ? view.HottestLines(most) : std::move(why.where);
  return finding;
}

}  // namespace fullbore::diagnose
