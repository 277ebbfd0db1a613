// memory-growth: the memory of the training (or of its loader's workers) rises steadily and does not come back: a
// leak, which ends a long run. Minima of stretches are looked at, so that what is collected from time to time counts
// as nothing; and the rise must not level off, as it does while caches fill.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge.h"
#include "explain/diagnose/statistics.h"
#include "record/json_text.h"

namespace fullbore::diagnose {

using record::Metric;

namespace {

constexpr size_t kStretches = 10, kMinStretches = 5;

struct Growth {
  double bytes_per_s = 0, low = 0, high = 0;  // 95 %
  double bytes = 0;                           // over the steady state
  double seconds = 0;
};

// The least of each of some stretches of equal length, with the middle of its time in seconds.
std::vector<std::pair<double, double>> Minima(const std::vector<record::Reading>& readings) {
  const size_t stretches = std::min(kStretches, readings.size() / 2);
  std::vector<std::pair<double, double>> minima;
  for (size_t i = 0; i < stretches; ++i) {
    const auto begin = readings.begin() + static_cast<std::ptrdiff_t>(i * readings.size() / stretches);
    const auto end = readings.begin() + static_cast<std::ptrdiff_t>((i + 1) * readings.size() / stretches);
    const auto least =
        std::min_element(begin, end, [](const auto& a, const auto& b) { return a.value < b.value; });
    minima.emplace_back(static_cast<double>(least->t_ns) / 1e9, least->value);
  }
  return minima;
}

double Rise(const std::vector<std::pair<double, double>>& minima, size_t from, size_t to) {
  return (minima[to].second - minima[from].second) / std::max(1e-9, minima[to].first - minima[from].first);
}

// Least squares through the minima; nothing if they do not rise all the way, or less and less.
std::optional<Growth> GrowthOf(const View& view, const record::Labels& labels) {
  std::vector<record::Reading> readings;
  for (const record::Series& series : view.stage().series) {
    if (!IsOf(series.key, Metric::kProcessMemory) || series.key.labels != labels) continue;
    for (const record::Reading& reading : series.readings) {
      if (reading.t_ns >= view.begin_ns() && reading.t_ns <= view.end_ns()) readings.push_back(reading);
    }
  }
  const auto minima = Minima(readings);
  if (minima.size() < kMinStretches) return std::nullopt;
  for (size_t i = 1; i < minima.size(); ++i) {
    if (minima[i].second <= minima[i - 1].second) return std::nullopt;
  }
  const size_t last = minima.size() - 1, middle = last / 2;
  if (Rise(minima, middle, last) < kStillGrowing * Rise(minima, 0, middle)) return std::nullopt;

  const auto n = static_cast<double>(minima.size());
  double mean_t = 0, mean_y = 0;
  for (const auto& [t, y] : minima) mean_t += t / n, mean_y += y / n;
  double tt = 0, ty = 0, residuals = 0;
  for (const auto& [t, y] : minima) tt += (t - mean_t) * (t - mean_t), ty += (t - mean_t) * (y - mean_y);
  const double slope = ty / tt;
  for (const auto& [t, y] : minima) residuals += std::pow(y - mean_y - slope * (t - mean_t), 2);
  const double half = StudentT95(minima.size() - 2) * std::sqrt(residuals / (n - 2) / tt);
  Growth growth{slope, slope - half, slope + half, 0, minima.back().first - minima.front().first};
  growth.bytes = slope * growth.seconds;
  return growth;
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
    const auto growth = GrowthOf(view, {{"role", role}});
    if (!growth || growth->low <= 0 || growth->bytes < kGrowthBytes) continue;
    const bool loader = std::string_view(role) == "loader";
    const auto room = RoomBytes(view);
    const double ends_s = room ? *room / growth->bytes_per_s : 0;
    const double step_bytes = growth->bytes_per_s * view.lead().MeanStepNs() / 1e9;
    Finding finding;
    const EvidenceBuilder evidence(finding);
    finding.cause = loader ? "workers" : "training";
    finding.severity = !room || ends_s > kGrowthLastsS ? Severity::kInfo
                       : ends_s < kGrowthEndsSoonS     ? Severity::kCritical
                                                       : Severity::kWarning;
    finding.title =
        fmt::format("The memory of {} grows by {} a step and is not given back{}.",
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
    evidence.FromMetric(Metric::kProcessMemory, "growth", growth->bytes_per_s, "bytes/s");
    evidence.FromMetric(Metric::kProcessMemory, "growth, low end of the 95 % interval", growth->low,
                        "bytes/s");
    evidence.FromMetric(Metric::kProcessMemory, "growth, high end", growth->high, "bytes/s");
    evidence.FromMetric(Metric::kProcessMemory, "grown while it was recorded", growth->bytes, "bytes");
    evidence.FromMetric(Metric::kMemoryAvailable, "memory that is left", room);
    if (!loader) NameWhatGrows(view, finding);
    return finding;
  }
  return std::nullopt;
}

}  // namespace fullbore::diagnose
