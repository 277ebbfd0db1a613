// instrumentation: what watches the training slows it down. Functions that are hooked into its passes, anomaly detection,
// a profiler that is never off, switches for debugging: no clock around a pass tells them from the model's own work, but
// samples and facts do.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "explain/diagnose/activity_shares.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"

namespace fullbore::diagnose {

using record::Activity;
using record::HotLine;
using record::Share;

namespace {

// Fewer samples may be one slow call.
constexpr int64_t kSamplesOfHooks = 5;
constexpr size_t kMostPlaces = 3;
// Done every tenth time, a tenth of it is left; of a hook that watches, half as often is the least that helps.
constexpr double kEveryTenth = 0.9, kHalfAsOften = 0.5;
// Of the backward pass, the search for NaN in each gradient: two networks of small layers, with anomaly detection and
// without, on a CPU: 0.54 and 0.66. Next to nothing where layers are large.
constexpr double kSearchForNan = 0.3, kMostOfSearchForNan = 0.7;

struct Seen {
  int64_t samples = 0, all = 0;
  std::vector<Place> where;
  bool of_libraries = true;  // all of it

  Sampled of_step() const { return SampledRatio(samples, all); }
};

// Within the passes: what happens in a validation is a part of that.
Seen SeenAt(const RankView& rank, Activity activity) {
  Seen seen;
  const auto counts = [&](const HotLine& line) {
    return line.activity == activity && line.share != Share::kHostOther;
  };
  for (const HotLine& line : rank.info->hot_lines) {
    seen.all += line.samples;
    if (!counts(line)) continue;
    seen.samples += line.samples;
    seen.of_libraries = seen.of_libraries && FileOrModule(line.file) != line.file;
  }
  seen.where = PlacesOf(rank.info->hot_lines, counts, static_cast<double>(seen.all));
  if (seen.where.size() > kMostPlaces) seen.where.resize(kMostPlaces);
  return seen;
}

double Without(double part) { return 1 / (1 - std::min(part, kMostOfAStep)); }

// ---- anomaly detection ----

// On a device the host's part of it may be hidden, and what the rest takes is not known.
void PromiseWithoutAnomalies(const View& view, const Sampled& stacks, Finding& finding) {
  if (!view.ComputesOnCpu()) return;
  const double backward = view.lead().Ratio(Share::kBackward);
  finding.speedup = {Without(stacks.ratio + kSearchForNan * backward), Without(stacks.low),
                     Without(stacks.high + kMostOfSearchForNan * backward)};
  finding.method = fmt::format(
      "stacks of operations, {} of the samples, not kept; at the high end {} of the backward pass is the "
      "search for NaN",
      FormatPercent(stacks.ratio), FormatPercent(kMostOfSearchForNan));
}

std::optional<Finding> AnomalyDetection(const View& view) {
  const Seen seen = SeenAt(view.lead(), Activity::kAnomaly);
  const Sampled stacks = seen.of_step();
  const bool is_on = view.Fact("anomaly_detection") == "true";
  if (!is_on && (seen.samples < kSamplesOfHooks || stacks.ratio < kHostOther.warning)) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.cause = "anomaly-detection";
  finding.share = seen.samples > 0 ? stacks.ratio : 0;
  finding.severity = finding.share >= kHostOther.critical ? Severity::kCritical : Severity::kWarning;
  finding.title = fmt::format(
      "Anomaly detection is on: torch keeps the stack of each operation{} and searches each gradient for "
      "NaN.",
      seen.samples >= kSamplesOfHooks ? fmt::format(" ({} of the time)", FormatPercent(finding.share)) : "");
  finding.fix = {
      "switch it on only to look for a NaN: without torch.autograd.set_detect_anomaly(True), "
      "detect_anomaly(), Lightning's detect_anomaly=True",
      "to notice that there is one: look at the loss with torch.isfinite, now and then"};
  if (seen.samples > 0) evidence.FromHook("stacks of operations", stacks.ratio, "ratio");
  if (seen.samples > 0) evidence.FromHook("samples", static_cast<double>(seen.samples), "count");
  if (seen.samples >= kSamplesOfHooks) PromiseWithoutAnomalies(view, stacks, finding);
  return finding;
}

// ---- hooks ----

std::optional<Finding> Hooks(const View& view) {
  const Seen seen = SeenAt(view.lead(), Activity::kHook);
  const Sampled of_step = seen.of_step();
  const auto severity = SeverityOf(of_step.ratio, kHostOther, view.lead().steps);
  if (!severity || seen.samples < kSamplesOfHooks || seen.where.empty()) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.cause = "hooks";
  finding.severity = *severity;
  finding.share = of_step.ratio;
  finding.where = seen.where;
  finding.title = fmt::format(
      "Functions that are hooked into the forward and backward passes take {} of the time, most of all at "
      "{}.",
      FormatPercent(of_step.ratio), NamesOf(seen.where));
  finding.fix = {
      "what only watches (histograms, norms, checks for NaN): every tenth or hundredth step, not in "
      "each"};
  evidence.FromHook("inside hooks", of_step.ratio, "ratio");
  evidence.FromHook("samples", static_cast<double>(seen.samples), "count");
  if (seen.of_libraries && view.ComputesOnCpu()) {
    finding.fix.insert(finding.fix.begin(), "the tracker's own option: wandb.watch(model, log_freq=1000)");
    finding.speedup = {Without(of_step.ratio * kEveryTenth), Without(of_step.low * kHalfAsOften),
                       Without(of_step.high)};
    finding.method = fmt::format("a tracker's hooks, {} to {} of the step, called half as often to never",
                                 FormatPercent(of_step.low), FormatPercent(of_step.high));
  } else {
    // A hook may as well change the gradients that it is given, in each step.
    finding.fix.push_back(
        fmt::format("if they only report, doing it every tenth step would make the run about {:.2f}x as "
                    "fast; what changes activations or gradients has to stay",
                    Without(of_step.ratio * kEveryTenth)));
  }
  return finding;
}

// ---- a profiler ----

std::optional<Finding> Profiler(const View& view) {
  if (view.Fact("profiler") != "true") return std::nullopt;
  Finding finding;
  finding.cause = "profiler";
  finding.severity = Severity::kWarning;
  finding.title =
      "The script's own torch profiler is on in all steps: it slows each of them down, and keeps every event "
      "in memory.";
  finding.fix = {
      "profile a few steps: torch.profiler.profile(schedule=torch.profiler.schedule(wait=20, warmup=2, "
      "active=3, repeat=1)), with profiler.step() in the loop; Lightning: profiler=None"};
  return finding;
}

// ---- switches for debugging ----

struct Switch {
  const char* fact;  // with the value that says that it is on
  const char* on;
  const char* what;
  const char* fix;
  Severity severity;
};

// CUDA's programming guide (asynchronous execution); pytorch.org/docs: distributed (debugging), notes/randomness.
constexpr std::array<Switch, 3> kSwitches{{
    {"launch_blocking", "true", "CUDA_LAUNCH_BLOCKING=1 makes the host wait for each kernel",
     "run without CUDA_LAUNCH_BLOCKING: it is for finding the kernel that fails", Severity::kWarning},
    {"distributed_debug", "DETAIL",
     "TORCH_DISTRIBUTED_DEBUG=DETAIL makes the ranks compare each collective before it begins",
     "TORCH_DISTRIBUTED_DEBUG=INFO, or none: DETAIL is for finding the collective in which ranks differ",
     Severity::kWarning},
    {"deterministic", "true", "torch.use_deterministic_algorithms(True) takes slower ones for some operators",
     "if runs need not repeat each other bit by bit: without torch.use_deterministic_algorithms(True)",
     Severity::kInfo},
}};

// How much they take is not known; each is cheap to try without.
std::optional<Finding> DebugSwitches(const View& view) {
  Finding finding;
  finding.cause = "debug-switches";
  finding.severity = Severity::kInfo;
  std::vector<std::string> on;
  for (const Switch& each : kSwitches) {
    const bool of_devices = std::string_view(each.fact) == "launch_blocking";
    if (view.Fact(each.fact) != each.on || (of_devices && view.ComputesOnCpu())) continue;
    on.emplace_back(each.what);
    finding.fix.emplace_back(each.fix);
    finding.severity = std::max(finding.severity, each.severity);
  }
  if (on.empty()) return std::nullopt;
  finding.open = finding.severity == Severity::kInfo;
  finding.title = fmt::format("Switches that cost time are on: {}.", fmt::join(on, "; "));
  return finding;
}

}  // namespace

std::optional<Finding> JudgeInstrumentation(const View& view, Diagnosis& /*diagnosis*/) {
  if (view.sampling()) return std::nullopt;
  if (auto finding = AnomalyDetection(view)) return finding;
  if (auto finding = Hooks(view)) return finding;
  if (auto finding = Profiler(view)) return finding;
  return DebugSwitches(view);
}

}  // namespace fullbore::diagnose
