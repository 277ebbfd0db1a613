#include "fleet/use.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/text.h"
#include "explain/diagnose/statistics.h"
#include "record/limits.h"
#include "record/metrics.h"

namespace fullbore::fleet {

namespace {

using record::Metric;
using record::Reading;
using record::Recording;
using record::Series;

constexpr double kEnough = 0.5;  // of what was given
constexpr double kSpareCores = 1, kSpareBytes = 1e9, kSpareNs = 3600e9;
constexpr double kSameLimit = 0.05;  // of what the job was given: the limit is that of its own group

// A number of the scheduler's, or nothing where it says nothing that can be.
std::optional<int64_t> Number(const Recording& recording, const char* fact) {
  const auto found = recording.machine.find(fact);
  if (found == recording.machine.end()) return std::nullopt;
  const auto number = ParseInt(found->second);
  constexpr int64_t kMost = 1'000'000'000'000;
  return number && *number > 0 && *number < kMost ? number : std::nullopt;
}

template <typename Visit>
void ForEach(const Recording& recording, Metric metric, Visit visit) {
  for (const record::Stage& stage : recording.stages) {
    for (const Series& series : stage.series) {
      if (IsOf(series.key, metric) && !series.readings.empty()) visit(series);
    }
  }
}

double Most(const Series& series) {
  return std::ranges::max_element(series.readings, {}, &Reading::value)->value;
}

std::optional<double> Most(const Recording& recording, Metric metric) {
  std::optional<double> most;
  ForEach(recording, metric,
          [&](const Series& series) { most = std::max(most.value_or(Most(series)), Most(series)); });
  return most;
}

bool IsOfRole(const Series& series) { return !series.key.labels.contains("rank"); }  // ranks are part of it

// All roles together, at each moment.
std::vector<double> BusyCores(const Recording& recording) {
  std::map<int64_t, double> at;
  ForEach(recording, Metric::kProcessCpu, [&](const Series& series) {
    if (!IsOfRole(series)) return;
    for (const Reading& reading : series.readings) at[reading.t_ns] += reading.value;
  });
  std::vector<double> cores;
  for (const auto& [t_ns, sum] : at) cores.push_back(sum);
  return cores;
}

void AddCores(const Recording& recording, Use& use) {
  use.cores_given = Number(recording, "job_cores");
  const std::vector<double> cores = BusyCores(recording);
  if (!use.cores_given || cores.empty()) return;
  double sum = 0;
  for (const double each : cores) sum += each;
  use.cores_mean = sum / static_cast<double>(cores.size());
  use.cores_p95 = diagnose::Quantile(cores, 0.95);
}

std::optional<int64_t> MemoryGiven(const Recording& recording) {
  constexpr int64_t kMb = 1 << 20;  // as Slurm counts
  if (const auto mb = Number(recording, "job_memory_mb")) return *mb * kMb;
  const auto of_core = Number(recording, "job_memory_per_core_mb"), cores = Number(recording, "job_cores");
  if (of_core && cores && *cores < (1 << 20)) return *of_core * *cores * kMb;
  return std::nullopt;
}

// The most that the job's own group held, without the page cache. Where the group is another one, what all processes of
// the command ever held: pages that they share count several times, so that it is rather too much.
std::optional<double> PeakMemory(const Recording& recording, int64_t given_bytes) {
  const auto limit = Most(recording, Metric::kCgroupMemoryLimit);
  if (limit && std::abs(*limit / static_cast<double>(given_bytes) - 1) < kSameLimit) {
    std::map<int64_t, double> cache;
    std::optional<double> peak;
    ForEach(recording, Metric::kCgroupMemoryCache, [&](const Series& series) {
      for (const Reading& reading : series.readings) cache[reading.t_ns] = reading.value;
    });
    ForEach(recording, Metric::kCgroupMemoryUsed, [&](const Series& series) {
      for (const Reading& reading : series.readings) {
        const auto known = cache.find(reading.t_ns);
        if (known != cache.end()) peak = std::max(peak.value_or(0), reading.value - known->second);
      }
    });
    if (peak) return peak;
  }
  std::map<std::string, double> roles;
  ForEach(recording, Metric::kProcessMemoryPeak, [&](const Series& series) {
    if (!IsOfRole(series)) return;
    double& most = roles[record::LabelledName(series.key)];
    most = std::max(most, Most(series));
  });
  std::optional<double> peak;
  for (const auto& [role, most] : roles) peak = peak.value_or(0) + most;
  return peak;
}

void AddMemory(const Recording& recording, Use& use) {
  use.memory_given_bytes = MemoryGiven(recording);
  if (!use.memory_given_bytes) return;
  if (const auto peak = PeakMemory(recording, *use.memory_given_bytes); peak && *peak >= 0 && *peak < 1e18)
    use.memory_peak_bytes = static_cast<int64_t>(*peak);
}

void AddTime(const Recording& recording, Use& use) {
  const auto start_s = Number(recording, "job_start_unix_s"), end_s = Number(recording, "job_end_unix_s");
  constexpr int64_t kLastS = record::kMaxWallOffsetNs / kNsPerSecond;
  if (!start_s || !end_s || *start_s >= *end_s || *end_s >= kLastS) return;
  use.time_given_ns = (*end_s - *start_s) * kNsPerSecond;
  int64_t end_ns = 0, used_ns = 0;
  if (__builtin_add_overflow(recording.stages.back().end_ns, recording.wall_offset_ns, &end_ns) ||
      __builtin_sub_overflow(end_ns, *start_s * kNsPerSecond, &used_ns))
    return;
  if (used_ns > 0) use.time_used_ns = used_ns;
}

// NVML tells whose processes a GPU has only where their numbers are valid; a GPU without any of the command's is not its.
void AddGpus(const Recording& recording, Use& use) {
  use.gpus_given = Number(recording, "job_gpus");
  if (!use.gpus_given) return;
  std::set<std::string> all, busy, ours;
  bool knows_whose = false;
  const auto gpu_of = [](const Series& series) {
    const auto gpu = series.key.labels.find("gpu");
    return gpu == series.key.labels.end() ? std::string() : gpu->second;
  };
  ForEach(recording, Metric::kGpuUtilization, [&](const Series& series) {
    all.insert(gpu_of(series));
    if (Most(series) > 0) busy.insert(gpu_of(series));
  });
  ForEach(recording, Metric::kGpuProcessMemory, [&](const Series& series) {
    const auto owner = series.key.labels.find("owner");
    if (owner == series.key.labels.end() || owner->second != "command") return;
    knows_whose = true;
    if (Most(series) > 0) ours.insert(gpu_of(series));
  });
  const auto given = static_cast<size_t>(*use.gpus_given);
  if (all.size() < given) return;
  if (!knows_whose && all.size() > given && !busy.empty()) return;  // those may be the others
  const auto used =
      std::ranges::count_if(busy, [&](const std::string& gpu) { return !knows_whose || ours.contains(gpu); });
  use.gpus_used = std::min<int64_t>(used, *use.gpus_given);
}

// Of a run within it that a step of Slurm's is, it sees the recorder alone.
bool SeesRunsWithin(const Recording& recording) {
  std::set<int64_t> recorders;
  for (const record::Stage& stage : recording.stages) {
    for (const record::Process& process : stage.processes) {
      if (process.role == record::kRecorderRole) recorders.insert(process.pid);
    }
  }
  return std::ranges::any_of(recording.stages, [&](const record::Stage& stage) {
    return std::ranges::any_of(stage.processes, [&](const record::Process& process) {
      return recorders.contains(process.parent_pid);
    });
  });
}

}  // namespace

Use UseOf(const Recording& recording) {
  Use use;
  use.restarts = Number(recording, "job_restarts").value_or(0);
  AddCores(recording, use);
  AddMemory(recording, use);
  AddTime(recording, use);
  AddGpus(recording, use);
  use.sees_runs_within = SeesRunsWithin(recording);
  return use;
}

std::vector<Amount> AmountsOf(const Use& use, bool ended_well) {
  std::vector<Amount> all;
  const auto add = [&](std::string_view what, auto given, auto used, auto hardly) {
    if (!given || !used) return;
    const auto had = static_cast<double>(*given), needed = static_cast<double>(*used);
    all.push_back({what, had, needed, hardly(had, needed)});
  };
  const auto with_to_spare = [](double spare) {
    return [spare](double had, double needed) { return needed < kEnough * had && needed + spare <= had; };
  };
  add("cores", use.cores_given, use.cores_p95, with_to_spare(kSpareCores));
  add("memory", use.memory_given_bytes, use.memory_peak_bytes, with_to_spare(kSpareBytes));
  add("time", use.time_given_ns, use.time_used_ns,
      [&](double had, double needed) { return ended_well && with_to_spare(kSpareNs)(had, needed); });
  add("GPUs", use.gpus_given, use.gpus_used, [&](double, double) { return use.NeverTouchedItsGpu(); });
  return all;
}

std::vector<Amount> HardlyUsedIn(const Use& use, bool ended_well) {
  std::vector<Amount> amounts = AmountsOf(use, ended_well);
  std::erase_if(amounts, [](const Amount& each) { return !each.hardly_used; });
  return amounts;
}

}  // namespace fullbore::fleet
