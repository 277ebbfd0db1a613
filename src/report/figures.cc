#include "report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>

#include "base/text.h"
#include "explain/diagnose/places.h"
#include "record/json_text.h"
#include "record/metrics.h"

namespace fullbore::report {

namespace {

using diagnose::Diagnosis;
using diagnose::Resource;
using record::Metric;

// The summaries of one quantity, one per set of labels: keys are "name" or "name{label=...}".
std::vector<Resource> Summaries(const Diagnosis& d, Metric metric) {
  std::vector<Resource> found;
  for (const auto& [key, resource] : d.resources) {
    if (std::string_view(key).substr(0, key.find('{')) == Name(metric)) found.push_back(resource);
  }
  return found;
}

std::optional<double> Mean(const Diagnosis& d, Metric metric) {
  const std::vector<Resource> all = Summaries(d, metric);
  if (all.empty()) return std::nullopt;
  double sum = 0;
  for (const Resource& resource : all) sum += resource.mean;
  return sum / static_cast<double>(all.size());
}

// The busiest of several disks: a mapped device and the disk under it must not count twice.
std::optional<double> HighestMean(const Diagnosis& d, Metric metric) {
  std::optional<double> highest;
  for (const Resource& resource : Summaries(d, metric))
    highest = std::max(highest.value_or(resource.mean), resource.mean);
  return highest;
}

std::optional<double> Peak(const Diagnosis& d, Metric metric) {
  std::optional<double> peak;
  for (const Resource& resource : Summaries(d, metric))
    peak = std::max(peak.value_or(resource.max), resource.max);
  return peak;
}

std::optional<double> Number(const std::map<std::string, std::string>& texts, const char* key) {
  const auto found = texts.find(key);
  return found == texts.end() ? std::nullopt : ParseDouble(found->second);
}

void AddRatio(std::vector<Figure>& figures, const char* label, std::optional<double> ratio) {
  if (ratio) figures.push_back({label, FormatPercent(*ratio)});
}

// "31 of 141 GB": the unit only once if both have the same.
void AddUsed(std::vector<Figure>& figures, const char* label, std::optional<double> used,
             std::optional<double> total) {
  if (!used) return;
  std::string used_text = FormatBytes(*used);
  if (total) {
    const std::string total_text = FormatBytes(*total);
    const size_t blank = used_text.find(' ');
    if (total_text.ends_with(used_text.substr(blank))) used_text.resize(blank);
    used_text += " of " + total_text;
  }
  figures.push_back({label, used_text});
}

std::optional<double> SumOfMeans(const Diagnosis& d, Metric metric) {
  const std::optional<double> mean = Mean(d, metric);
  if (!mean) return std::nullopt;
  return *mean * static_cast<double>(Summaries(d, metric).size());
}

// How many of the cores that the command may use are busy. In a container these are fewer than the machine
// has, and the machine's load says nothing about them; then the command's own processes count.
void AddCores(std::vector<Figure>& figures, const Diagnosis& d) {
  const std::optional<double> usable = Number(d.machine, "cores");
  const std::optional<double> all = Number(d.machine, "cores_logical");
  const std::optional<double> ratio = Mean(d, Metric::kCpuUtilization);
  std::optional<double> used = ratio && usable ? std::optional(*ratio * *usable) : std::nullopt;
  if (usable && all && *usable < *all) used = SumOfMeans(d, Metric::kProcessCpu);
  if (used) {
    figures.push_back({"CPU", fmt::format("{:.1f} of {} cores", *used, FormatCount(*usable))});
  } else {
    AddRatio(figures, "CPU", ratio);
  }
}

// A fact as plain text: a JSON string without its quotes, other values as they are.
std::string FactText(const Diagnosis& d, const char* key) {
  const auto found = d.facts.find(key);
  if (found == d.facts.end()) return "";
  const auto value = record::ParseJson(found->second);
  return value.is_string() ? value.get<std::string>() : found->second;
}

// Of a trace without steps and device activity, with the next step.
std::string EmptyTraceText(const Diagnosis& d) {
  const std::string held = FactText(d, "trace_holds");
  std::string text = held.empty()
                         ? "This trace holds no events, at most names of processes and threads."
                         : "This trace marks no steps and holds no device activity, only " + held + ".";
  for (const diagnose::NotJudged& one : d.not_judged) {
    if (one.id == "the trace") text += " To be judged it needs " + one.needs + ".";
  }
  return text;
}

std::string MachineText(const Diagnosis& d, const std::string& key) {
  const auto found = d.machine.find(key);
  return found == d.machine.end() ? "" : found->second;
}

// "8x NVIDIA H200": the GPUs that the ranks trained on if that is known, else all there are; the processor if
// no GPU is involved.
std::string HardwareText(const Diagnosis& d) {
  size_t gpus = 0;
  while (d.machine.contains("gpu" + std::to_string(gpus))) ++gpus;
  const auto on_gpu = [](const diagnose::RankShares& rank) { return rank.device.starts_with("cuda"); };
  const bool devices_known =
      std::any_of(d.ranks.begin(), d.ranks.end(), [](auto& r) { return !r.device.empty(); });
  if (gpus > 0 && devices_known) {
    gpus = static_cast<size_t>(std::count_if(d.ranks.begin(), d.ranks.end(), on_gpu));
  }
  if (gpus > 0) return fmt::format("{}x {}", gpus, MachineText(d, "gpu0"));
  const std::string cpu = MachineText(d, "cpu_model");
  const std::string cores = MachineText(d, "cores");
  if (cores.empty()) return cpu;
  return cores + (cpu.empty() ? " CPU cores" : " cores, " + cpu);
}

// What is said before the verdict, since it changes how that is read.
bool IsALimit(const fitness::Condition& condition) {
  const bool of_one_figure =
      condition.forbids.size() == 1 && condition.Forbids(fitness::Conclusion::kOfTheDevice);
  return condition.id == "noise" || !(condition.forbids.empty() || of_one_figure);
}

}  // namespace

std::vector<Figure> DeviceFigures(const Diagnosis& d) {
  std::vector<Figure> figures;
  AddRatio(figures, "GPU util", Mean(d, Metric::kGpuUtilization));
  AddRatio(figures, "SM", Mean(d, Metric::kGpuSmActive));
  AddRatio(figures, "tensor", Mean(d, Metric::kGpuTensorActive));
  AddRatio(figures, "computed again", d.recomputed);
  AddUsed(figures, "memory", Peak(d, Metric::kGpuMemoryUsed), Peak(d, Metric::kGpuMemoryTotal));
  return figures;
}

std::vector<Figure> HostFigures(const Diagnosis& d) {
  std::vector<Figure> figures;
  AddCores(figures, d);
  AddRatio(figures, "iowait", Mean(d, Metric::kCpuIowait));
  const std::optional<double> limit = Number(d.machine, "cgroup_memory_limit");
  const std::optional<double> total = Peak(d, Metric::kMemoryTotal);
  if (limit && total && *limit < *total) {
    AddUsed(figures, "RAM", Peak(d, Metric::kCgroupMemoryUsed), limit);
  } else {
    AddUsed(figures, "RAM", Peak(d, Metric::kMemoryUsed), total);
  }
  if (const auto read = HighestMean(d, Metric::kDiskRead); read && *read >= 1e5) {
    figures.push_back({"disk read", FormatBytes(*read) + "/s"});
  }
  if (const auto write = HighestMean(d, Metric::kDiskWrite); write && *write >= 1e5) {
    figures.push_back({"disk write", FormatBytes(*write) + "/s"});
  }
  return figures;
}

std::string RegimesText(const Diagnosis& d) {
  if (d.regimes.size() < 2) return "";
  const auto duration = [](const diagnose::Regime& regime) {
    return FormatDuration(static_cast<int64_t>(regime.mean_step_ns));
  };
  return fmt::format(
      "the first {} of these steps took {} on average, the other {} {}; nothing says that they were warm-up",
      FormatCount(static_cast<double>(d.regimes[0].steps)), duration(d.regimes[0]),
      FormatCount(static_cast<double>(d.regimes[1].steps)), duration(d.regimes[1]));
}

std::string StepWord(const Diagnosis& d) {
  if (d.fitness.Forbids(fitness::Conclusion::kRates)) return d.steps == 1 ? "stretch" : "period";
  return d.engine.empty() ? "step" : "iteration";
}

std::string RateText(const Diagnosis& d, double times_faster) {
  if (d.fitness.Forbids(fitness::Conclusion::kRates)) return "";
  if (d.samples_per_s) return FormatCount(*d.samples_per_s * times_faster) + " samples/s";
  return FormatCount(d.steps_per_s * times_faster) + " " + StepWord(d) + "s/s";
}

std::string RateRangeText(const Diagnosis& d) {
  if (!d.samples_per_s || !d.samples_per_s_low || !d.samples_per_s_high) return "";
  const double half = (*d.samples_per_s_high - *d.samples_per_s_low) / 2;
  const auto text = [half](double rate) {
    return half >= 1 ? FormatCount(std::round(rate)) : fmt::format("{:.2f}", rate);
  };
  if (half < *d.samples_per_s) return " ±" + text(half);
  return fmt::format(" ({} to {})", text(*d.samples_per_s_low), text(*d.samples_per_s_high));
}

std::string TokenRateText(const Diagnosis& d) {
  if (!d.tokens_per_s) return "";
  std::string text = FormatCount(std::round(*d.tokens_per_s)) + " tokens/s";
  if (d.useful_tokens_per_s && *d.useful_tokens_per_s < *d.tokens_per_s)
    text += fmt::format(", {} without padding", FormatCount(std::round(*d.useful_tokens_per_s)));
  return text;
}

std::string FlopsText(const Diagnosis& d) {
  if (!d.flops) return "";
  const std::string rate = FormatQuantity(d.flops->per_s, "FLOP/s");
  if (!d.flops->unknown.empty())
    return fmt::format("at least {}, without {}", rate, fmt::join(d.flops->unknown, ", "));
  if (!d.flops->mfu) return rate + " by the model";
  return fmt::format("{}, {} of the peak of {} (MFU)", rate, FormatPercent(*d.flops->mfu), d.flops->peak);
}

std::string ServedText(const diagnose::ServedPhase& phase) {
  std::string text = fmt::format("{} {}, {} of the time", phase.iterations,
                                 phase.phase + (phase.iterations == 1 ? " iteration" : " iterations"),
                                 FormatPercent(phase.share));
  if (phase.tokens_per_iteration)
    text += fmt::format(", {} tokens each: {} tokens/s", FormatCount(std::round(*phase.tokens_per_iteration)),
                        FormatCount(std::round(*phase.tokens_per_s)));
  return text;
}

std::string SampledText(const diagnose::Sampling& sampled) {
  return fmt::format("sampled, ±{:.0f} points", std::max(1.0, std::ceil(100 * sampled.points)));
}

std::string GainText(const diagnose::Finding& finding) {
  if (finding.method.empty()) return "";
  const std::string low = fmt::format("{:.2f}x", finding.speedup.low);
  const std::string high = fmt::format("{:.2f}x", finding.speedup.high);
  return low == high ? low : low + " to " + high;
}

std::string CostText(const diagnose::Finding& finding) {
  if (finding.costs == replay::Cost::kMemory) return ", takes more memory";
  return finding.costs == replay::Cost::kNumerics ? ", changes the numerics" : "";
}

std::string PlaceText(const diagnose::Finding& finding) {
  if (finding.where.empty()) return "";
  const diagnose::Place& place = finding.where.front();
  return place.line > 0 ? NameOf(place) : place.file.substr(place.file.rfind('/') + 1);
}

bool IsRefused(const Diagnosis& d) {
  const bool stands_still = !d.findings.empty() && d.findings.front().stands_still;
  return !d.fitness.CanBeJudged() && !stands_still;
}

std::vector<std::string> LimitTexts(const Diagnosis& d) {
  std::vector<std::string> texts;
  const fitness::Condition* refusal =
      IsRefused(d) ? d.fitness.WhyNot(fitness::Conclusion::kAnything) : nullptr;
  for (const fitness::Condition& condition : d.fitness.conditions) {
    if (&condition == refusal || !IsALimit(condition)) continue;
    texts.push_back(condition.says + (condition.mend.empty() ? "" : " " + condition.mend));
  }
  return texts;
}

std::vector<std::string> CaveatTexts(const Diagnosis& d) {
  std::vector<std::string> texts;
  for (const fitness::Condition& condition : d.fitness.conditions)
    if (!IsALimit(condition)) texts.push_back(condition.says);
  return texts;
}

std::string VerdictText(const Diagnosis& d) {
  if (IsRefused(d)) return d.fitness.Refusal();
  if (!d.findings.empty()) return d.findings.front().title;
  if (d.steps == 0 && d.facts.count("trace_holds") != 0) return EmptyTraceText(d);
  if (d.steps == 0)
    return "No training seen: nothing in this command took an optimizer step that could be recorded.";
  return "No cause stands out in what was recorded.";
}

std::string FailureText(const Diagnosis& d) {
  const int status = d.exit_status.value_or(0);
  if (d.out_of_memory) {
    const std::string how = d.exit_status ? fmt::format(" (exit status {})", status) : "";
    return "The kernel killed a process of the command: out of memory" + how + ".";
  }
  if (status == 0) return "";
  if (status > 128 && status <= 128 + SIGRTMAX) {
    return fmt::format("The command was killed by signal {}, {} (exit status {}).", status - 128,
                       strsignal(status - 128), status);
  }
  return fmt::format("The command failed with exit status {}.", status);
}

std::vector<std::string> SubjectParts(const Diagnosis& d) {
  std::vector<std::string> parts;
  for (std::string part : {FactText(d, "model"), HardwareText(d), FactText(d, "precision")}) {
    if (!part.empty()) parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace fullbore::report
