// memory-growth: the memory of the training (or of its loader's workers) rises steadily and does not come back: a
// leak, which ends a long run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/growth.h"
#include "explain/diagnose/judge.h"
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
};

// What a worker shares with the trainer, from which it was forked, counts as its own in the memory of processes, and is
// not: a page that it writes to becomes its own, and nothing shows in that sum. Batches under way in /dev/shm do, and
// come and go. So what counts of workers is their part of each page (PSS), where that was recorded.
std::optional<Grows> GrowthOf(const View& view, const char* role) {
  if (std::string_view(role) == "loader") {
    const auto pss = ReadingsOf(view, Metric::kProcessPss, role);
    if (!pss.empty()) {
      const auto growth = SteadyGrowth(Changes(pss), 1);
      return growth ? std::optional(Grows{*growth, Metric::kProcessPss}) : std::nullopt;
    }
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
    const auto number = [&](const char* key) {
      return one.contains(key) && one[key].is_number() ? one[key].get<double>() : 0.0;
    };
    const std::string file = text("file"), holds = text("holds");
    const int line = static_cast<int>(std::clamp(number("line"), 0.0, 1e9));
    named.push_back(fmt::format("{} ({}:{}) grows: from {} to {} entries in {} steps{}", text("name"),
                                file.substr(file.rfind('/') + 1), line, FormatCount(number("from")),
                                FormatCount(number("to")), FormatCount(number("steps")),
                                holds.empty() ? "" : "; it holds " + holds));
    finding.where.push_back({file, line, "", 0});
  }
  finding.fix.insert(finding.fix.begin(), named.begin(), named.end());
}

}  // namespace

std::optional<Finding> JudgeMemoryGrowth(const View& view, Diagnosis& /*diagnosis*/) {
  for (const char* role : {"trainer", "loader"}) {
    const auto grows = GrowthOf(view, role);
    if (!grows || grows->growth.low <= 0 || grows->growth.rise < kGrowthBytes) continue;
    const Growth& growth = grows->growth;
    const Metric metric = grows->metric;
    const bool loader = std::string_view(role) == "loader";
    const auto room = RoomBytes(view);
    const double ends_s = room ? *room / growth.per_s : 0;
    const double step_bytes = growth.per_s * view.lead().MeanStepNs() / 1e9;
    Finding finding;
    const EvidenceBuilder evidence(finding);
    finding.cause = loader ? "workers" : "training";
    finding.severity = !room || ends_s > kGrowthLastsS ? Severity::kInfo
                       : ends_s < kGrowthEndsSoonS     ? Severity::kCritical
                                                       : Severity::kWarning;
    finding.title =
        fmt::format("The {}memory of {} grows by {} a step and is not given back{}.",
                    metric == Metric::kProcessPss ? "private " : "",
                    loader ? "the loader's workers" : "the training", FormatBytes(step_bytes),
                    room ? fmt::format(": at this rate the {} that are left last for {}", FormatBytes(*room),
                                       FormatDuration(std::llround(ends_s * 1e9)))
                         : "");
    finding.fix =
        loader ? std::vector<std::string>{"keep what the dataset holds in NumPy or Arrow arrays, not in lists of Python "
                                          "objects: reading one writes its reference count, and the worker's copy grows",
                                          "a cache inside the dataset exists once in each worker: limit it"}
               : std::vector<std::string>{"keep numbers, not tensors: total += loss.item() or loss.detach(), because a "
                                          "kept loss keeps its whole graph",
                                          "limit caches and lists that each step adds to; tracemalloc (two snapshots, "
                                          "compared) says which line allocates them"};
    evidence.FromMetric(metric, "growth", growth.per_s, "bytes/s");
    evidence.FromMetric(metric, "growth, low end of the 95 % interval", growth.low, "bytes/s");
    evidence.FromMetric(metric, "growth, high end", growth.high, "bytes/s");
    evidence.FromMetric(metric, "grown while it was recorded", growth.rise, "bytes");
    evidence.FromMetric(Metric::kMemoryAvailable, "memory that is left", room);
    if (!loader) NameWhatGrows(view, finding);
    return finding;
  }
  return std::nullopt;
}

}  // namespace fullbore::diagnose
