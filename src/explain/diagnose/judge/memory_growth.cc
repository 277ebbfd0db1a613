// memory-growth: the memory of the training (or of its loader's workers) rises steadily and does not come back: a
// leak, which ends a long run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/growth.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/places.h"
#include "record/json_text.h"

namespace fullbore::diagnose {

using record::Metric;

namespace {

std::vector<record::Reading> ReadingsOf(const View& view, Metric metric, const char* role) {
  std::vector<record::Reading> readings;
  for (const record::Series& series : view.stage().series) {
    if (!IsOf(series.key, metric) || series.key.labels != record::Labels{{"role", role}}) continue;
    for (const record::Reading& reading : series.readings) {
      if (reading.t_ns >= view.begin_ns() && reading.t_ns <= view.end_ns()) readings.push_back(reading);
    }
  }
  return readings;
}

// Each as it came: between two looks at the processes the same sum is repeated.
std::vector<record::Reading> Changes(const std::vector<record::Reading>& readings) {
  std::vector<record::Reading> changes;
  for (const record::Reading& reading : readings) {
    if (changes.empty() || reading.value != changes.back().value) changes.push_back(reading);
  }
  return changes;
}

struct Grows {
  Growth growth;
  Metric metric = Metric::kProcessMemory;
  // Of workers that copy, page by page, what they share with the training: what all of them take if they copy the rest.
  std::optional<double> to_copy{};
};

// A page of the training that N workers share with it counts N/(N+1) as theirs, and N once each has copied it: they take
// that much more than what they map beyond their part. Twice as much for one worker, which is the most.
double CopiesOfShared(const View& view) {
  const record::Loader* loader = view.HasSteps() ? view.lead().TrainingLoader() : nullptr;
  const auto workers = static_cast<double>(loader ? std::max<int64_t>(1, loader->num_workers) : 1);
  return (workers + 1) / workers;
}

// A part of each page for each process that maps it. What grows in it, and not in the memory that the processes map, was
// shared before, and is copied.
std::optional<Grows> GrowthOfWorkers(const View& view, const std::vector<record::Reading>& pss) {
  const auto growth = SteadyGrowth(Changes(pss), 1);
  if (!growth) return std::nullopt;
  Grows grows{*growth, Metric::kProcessPss};
  const auto mapped = ReadingsOf(view, Metric::kProcessMemory, "loader");
  if (mapped.empty()) return grows;
  const auto since =
      std::ranges::find_if(mapped, [&](const auto& one) { return one.t_ns >= pss.front().t_ns; });
  const double mapped_rise = mapped.back().value - (since == mapped.end() ? mapped.back() : *since).value;
  if (mapped_rise < kCopiedAtMost * growth->rise)
    grows.to_copy = CopiesOfShared(view) * std::max(0.0, mapped.back().value - pss.back().value);
  return grows;
}

// What a worker shares with the trainer, from which it was forked, counts as its own in the memory of processes, and is
// not: a page that it writes to becomes its own, and nothing shows in that sum. Batches under way in /dev/shm do, and
// come and go. So what counts of workers is their part of each page (PSS), where that was recorded.
std::optional<Grows> GrowthOf(const View& view, const char* role) {
  if (std::string_view(role) == "loader") {
    const auto pss = ReadingsOf(view, Metric::kProcessPss, role);
    if (!pss.empty()) return GrowthOfWorkers(view, pss);
  }
  const auto growth = SteadyGrowth(ReadingsOf(view, Metric::kProcessMemory, role));
  return growth ? std::optional(Grows{*growth}) : std::nullopt;
}

// What is left before the kernel ends a process: below the limit of the container, or of the machine.
std::optional<double> RoomBytes(const View& view) {
  const auto used = view.Max(Metric::kCgroupMemoryUsed), limit = view.Max(Metric::kCgroupMemoryLimit);
  const auto cache = view.Mean(Metric::kCgroupMemoryCache);
  const auto free = view.Mean(Metric::kMemoryAvailable);
  if (!used || !limit) return free;
  const double room = std::max(0.0, *limit - (*used - cache.value_or(0)));
  return std::min(room, free.value_or(room));
}

// What the hook saw growing in the script, named first: "self.history grows from 40 to 900 in 1,720 steps (tensors that
// keep their graphs)", with the line that adds to it.
void NameWhatGrows(const View& view, Finding& finding) {
  const nlohmann::json growing = record::ParseJson(view.Fact("growing").value_or(""));
  std::vector<std::string> named;
  for (const nlohmann::json& one : growing.is_array() ? growing : nlohmann::json::array()) {
    const auto text = [&](const char* key) {
      return one.contains(key) && one[key].is_string() ? one[key].get<std::string>() : "";
    };
    const auto number = [&](const char* key) { return record::NumberIn(one, key); };
    const Place place{text("file"), static_cast<int>(std::clamp(number("line"), 0.0, 1e9)), "", 0};
    const std::string holds = text("holds");
    named.push_back(fmt::format("{} ({}) grows: from {} to {} entries in {} steps{}", text("name"),
                                NameOf(place), FormatCount(number("from")), FormatCount(number("to")),
                                FormatCount(number("steps")), holds.empty() ? "" : "; it holds " + holds));
    finding.where.push_back(place);
  }
  finding.fix.insert(finding.fix.begin(), named.begin(), named.end());
}

std::string TitleOf(const View& view, const Grows& grows, bool loader, std::optional<double> room,
                    double ends_s) {
  const Growth& growth = grows.growth;
  const std::string lasts = room ? fmt::format("at this rate the {} that are left last for {}",
                                               FormatBytes(*room), FormatDuration(std::llround(ends_s * 1e9)))
                                 : "";
  if (grows.to_copy) {
    const std::string bound = room && *grows.to_copy < *room
                                  ? fmt::format("they can take at most {} more, of {} that are left",
                                                FormatBytes(*grows.to_copy), FormatBytes(*room))
                                  : lasts;
    return fmt::format(
        "The private memory of the loader's workers grows by {}/s: they copy, page by page, what they share "
        "with the training{}{}.",
        FormatBytes(growth.per_s), bound.empty() ? "" : "; ", bound);
  }
  const double step_bytes = growth.per_s * view.lead().MeanStepNs() / 1e9;
  return fmt::format("The {}memory of {} grows by {} a step and is not given back{}{}.",
                     grows.metric == Metric::kProcessPss ? "private " : "",
                     loader ? "the loader's workers" : "the training", FormatBytes(step_bytes),
                     lasts.empty() ? "" : ": ", lasts);
}

std::vector<std::string> FixOf(const Grows& grows, bool loader) {
  if (!loader) {
    return {
        "keep numbers, not tensors: total += loss.item() or loss.detach(), because a kept loss keeps its "
        "whole graph",
        "limit caches and lists that each step adds to; tracemalloc (two snapshots, compared) says which "
        "line allocates them"};
  }
  std::vector<std::string> fix = {
      "keep what the dataset holds in NumPy or Arrow arrays, in tensors or in one bytes object, not in lists "
      "of Python objects: reading one writes its reference count, and the worker's copy grows"};
  if (!grows.to_copy) fix.push_back("a cache inside the dataset exists once in each worker: limit it");
  return fix;
}

// A trend is believed for twenty times as long as it was seen.
bool EndsTheRun(const View& view, const Growth& growth, double ends_s) {
  const bool goes_on = !view.stage().exit_status || view.stage().out_of_memory;
  return goes_on && ends_s < std::min(kGrowthEndsSoonS, kBelievedFor * growth.rise / growth.per_s);
}

}  // namespace

std::optional<Finding> JudgeMemoryGrowth(const View& view, Diagnosis& /*diagnosis*/) {
  for (const char* role : {"trainer", "loader"}) {
    const auto grows = GrowthOf(view, role);
    if (!grows || grows->growth.low <= 0 || grows->growth.rise < kGrowthBytes) continue;
    const Growth& growth = grows->growth;
    const bool loader = std::string_view(role) == "loader";
    const auto room = RoomBytes(view);
    const bool fits = grows->to_copy && room && *grows->to_copy < *room;
    const double ends_s = room ? *room / growth.per_s : 0;
    Finding finding;
    const EvidenceBuilder evidence(finding);
    finding.cause = !loader ? "training" : grows->to_copy ? "copied" : "workers";
    finding.severity = !room || fits || ends_s > kGrowthLastsS ? Severity::kInfo
                       : ends_s < kGrowthEndsSoonS             ? Severity::kCritical
                                                               : Severity::kWarning;
    finding.stands_still = room && !fits && EndsTheRun(view, growth, ends_s);
    finding.title = TitleOf(view, *grows, loader, room, ends_s);
    finding.fix = FixOf(*grows, loader);
    evidence.FromMetric(grows->metric, "growth", growth.per_s, "bytes/s");
    evidence.FromMetric(grows->metric, "growth, low end of the 95 % interval", growth.low, "bytes/s");
    evidence.FromMetric(grows->metric, "growth, high end", growth.high, "bytes/s");
    evidence.FromMetric(grows->metric, "grown while it was recorded", growth.rise, "bytes");
    evidence.FromMetric(grows->metric, "they can still copy, at most", grows->to_copy);
    evidence.FromMetric(Metric::kMemoryAvailable, "memory that is left", room);
    if (!loader) NameWhatGrows(view, finding);
    return finding;
  }
  return std::nullopt;
}

}  // namespace fullbore::diagnose
