// hang: no step for long, and nothing is computed: a kernel spins on the device without doing any work, as a collective
// that waits for a rank does, or neither the device nor the command's processes do anything. Where workers of a loader
// were seen in one and the same fetch all that time, the training waits for them.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/places.h"
#include "record/activity.h"
#include "record/json_text.h"

namespace fullbore::diagnose {

using record::Metric;

namespace {

// What keeps everything waiting, in words; empty where something is computed, or nothing is known.
std::string WhatWaits(const View& view) {
  const auto utilization = view.MeanAfterSteps(Metric::kGpuUtilization),
             sm = view.MeanAfterSteps(Metric::kGpuSmActive), cores = view.CoresAfterSteps();
  if (utilization && sm && *utilization >= kUtilizationHigh && *sm < kNothingRuns)
    return "while a kernel spins on the GPU doing no work: a collective is waiting for a rank";
  if (!cores || *cores >= kNothingComputes * static_cast<double>(view.RanksOnLeadsMachine()) ||
      utilization.value_or(0) >= kNothingRuns)
    return "";
  return view.ranks().size() > 1 ? "and nothing computes: the ranks wait for one that does not come"
                                 : "and nothing computes: the training waits for what does not come";
}

// A worker of a loader that has been in one fetch for most of the time since the last step.
struct StuckWorker {
  int64_t pid = 0;
  int64_t for_ns = 0;
  Place place;
  record::Activity activity = record::Activity::kUnknown;
};

constexpr int64_t kLatestNs = int64_t{1} << 62;  // two of them can be subtracted
// A file that others sent may hold any number of anything, of any length.
constexpr size_t kMostWorkers = 16, kMostThreads = 8, kLongestName = 80;

std::string Clipped(const std::string& name) {
  return name.size() <= kLongestName ? name : name.substr(0, kLongestName) + "...";
}

std::optional<StuckWorker> StuckWorkerOf(const nlohmann::json& stated, const View& view) {
  const auto number = [&](const char* key) {
    const bool known = stated.contains(key) && stated[key].is_number_integer();
    return known ? std::clamp<int64_t>(stated[key].get<int64_t>(), 0, kLatestNs) : 0;
  };
  const auto text = [&](const char* key) {
    return stated.contains(key) && stated[key].is_string() ? stated[key].get<std::string>() : "";
  };
  if (!stated.is_object()) return std::nullopt;
  const int64_t stood_ns = view.stage().end_ns - view.end_ns(), seen_ns = number("seen_ns");
  const int64_t within_ns = seen_ns - std::max(number("begin_ns"), view.end_ns());
  // Its last sample is as old as the sampler is slow, or the run file's writing.
  if (static_cast<double>(within_ns) < kMostOfAHang * static_cast<double>(stood_ns)) return std::nullopt;
  StuckWorker worker{number("pid"), seen_ns - number("begin_ns"), {}, {}};
  worker.place.file = text("file");
  worker.place.line = static_cast<int>(std::clamp<int64_t>(number("line"), 0, 1 << 30));
  worker.activity = record::ActivityNamed(text("activity")).value_or(record::Activity::kUnknown);
  return worker;
}

std::vector<StuckWorker> StuckWorkers(const View& view) {
  std::vector<StuckWorker> workers;
  for (const RankView& rank : view.ranks()) {
    const auto fact = rank.info->facts.find("unfinished_fetches");
    if (fact == rank.info->facts.end()) continue;
    const nlohmann::json stated = record::ParseJson(fact->second);
    for (const nlohmann::json& one : stated.is_array() ? stated : nlohmann::json::array()) {
      if (workers.size() == kMostWorkers) break;
      if (const auto worker = StuckWorkerOf(one, view)) workers.push_back(*worker);
    }
  }
  std::ranges::stable_sort(workers, std::greater(), &StuckWorker::for_ns);
  return workers;
}

std::string DoesWhat(record::Activity activity) {
  switch (activity) {
    case record::Activity::kLock:
      return "waits for a lock";
    case record::Activity::kQueue:
    case record::Activity::kFuture:
      return "waits for another process or thread";
    case record::Activity::kSubprocess:
      return "waits for a program that it started";
    case record::Activity::kNetwork:
      return "waits for the network";
    case record::Activity::kFile:
      return "waits for a file";
    case record::Activity::kSleep:
      return "sleeps";
    default:
      return "stands";
  }
}

// What the workers may wait for is told by where they stand. A lock or native code that stands still in a forked
// process may be one that a thread of the parent's held when it was forked; a request that is not answered is none of
// that.
bool MayBeAnInheritedLock(const StuckWorker& worker, const record::Loader* loader) {
  using record::Activity;
  const bool forked = loader == nullptr || !loader->WorkersImportScript();
  return forked &&
         (worker.activity == Activity::kLock || worker.activity == Activity::kUnknown ||
          worker.activity == Activity::kTokenising || worker.activity == Activity::kDataPreparation);
}

std::vector<std::string> ThreadsAtFork(const View& view) {
  std::vector<std::string> names;
  const nlohmann::json stated = record::ParseJson(view.Fact("threads_at_fork").value_or(""));
  for (const nlohmann::json& name : stated.is_array() ? stated : nlohmann::json::array())
    if (name.is_string() && names.size() < kMostThreads) names.push_back(Clipped(name.get<std::string>()));
  return names;
}

// "and nothing computes: a worker of its loader (process 671) has been in one fetch for 3 min, and waits for a lock at
// train.py:24".
std::string OfWorkers(const std::vector<StuckWorker>& workers) {
  const StuckWorker& first = workers.front();
  const std::string of_all =
      workers.size() == 1
          ? fmt::format("a worker of its loader (process {}) has", first.pid)
          : fmt::format("{}{} workers of its loader (one is process {}) have",
                        workers.size() == kMostWorkers ? "at least " : "", workers.size(), first.pid);
  return fmt::format("and nothing computes: {} been in one fetch for {}; {}{} at {}", of_all,
                     FormatDuration(first.for_ns), workers.size() == 1 ? "it " : "the first ",
                     DoesWhat(first.activity), Clipped(NameOf(first.place)));
}

void AdviseOnWorkers(const View& view, const std::vector<StuckWorker>& workers, Finding& finding) {
  const StuckWorker& first = workers.front();
  finding.cause = "worker";
  const bool ended = view.stage().exit_status.has_value();
  finding.fix.clear();
  if (!ended)
    finding.fix.push_back(fmt::format("see its whole stack: py-spy dump --native --pid {}", first.pid));
  if (first.activity == record::Activity::kNetwork)
    finding.fix.push_back("give the request a time-out, and try it again");
  if (MayBeAnInheritedLock(first, view.lead().TrainingLoader())) {
    const std::vector<std::string> threads = ThreadsAtFork(view);
    const std::string beside =
        threads.empty() ? "" : fmt::format(" (beside the training ran: {})", fmt::join(threads, ", "));
    finding.fix.push_back(fmt::format(
        "where another thread of the training held a lock while the worker was forked, it stays locked in "
        "the worker for ever{}: TOKENIZERS_PARALLELISM=false if it is a tokenizer's; start threads only once "
        "the workers run, or do not fork these: DataLoader(multiprocessing_context=\"forkserver\")",
        beside));
  }
  finding.fix.push_back("DataLoader(timeout=120): the training then fails instead of hanging");
  if (ended)
    finding.fix.push_back("when it hangs again: py-spy dump --native --pid PID of the worker's process");
  for (const StuckWorker& worker : workers) {
    const bool known = std::ranges::any_of(finding.where, [&](const Place& place) {
      return place.file == worker.place.file && place.line == worker.place.line;
    });
    if (!known) finding.where.push_back(worker.place);
  }
}

}  // namespace

std::optional<Finding> JudgeHang(const View& view, Diagnosis& /*diagnosis*/) {
  // Only what happened after the last step counts: before that there was work. What ends well did not hang.
  const int64_t since_step_ns = view.stage().end_ns - view.end_ns();
  if (!view.HasSteps() || since_step_ns <= kHangForNs || view.stage().exit_status == 0) return std::nullopt;
  std::string what = WhatWaits(view);
  if (what.empty()) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  const std::vector<StuckWorker> workers = StuckWorkers(view);
  if (!workers.empty()) what = OfWorkers(workers);
  finding.severity = Severity::kCritical;
  finding.share = 1;
  finding.stands_still = true;
  finding.title = fmt::format("No step for {}, {}.", FormatDuration(since_step_ns), what);
  finding.fix = {
      view.ranks().size() > 1
          ? "find the missing rank: py-spy dump on each rank; for next time, turn on the flight recorder "
            "(TORCH_FR_BUFFER_SIZE, before PyTorch 2.8 TORCH_NCCL_TRACE_BUFFER_SIZE)"
          : "find out what it waits for: py-spy dump --pid PID of the training process and of its loader's "
            "workers"};
  if (!workers.empty()) {
    AdviseOnWorkers(view, workers, finding);
    evidence.FromHook("a worker has been in one fetch for", static_cast<double>(workers.front().for_ns) / 1e9,
                      "s");
  }
  evidence.FromMetric(Metric::kGpuUtilization, "GPU utilisation since the last step",
                      view.MeanAfterSteps(Metric::kGpuUtilization));
  evidence.FromMetric(Metric::kGpuSmActive, "multiprocessors active since then",
                      view.MeanAfterSteps(Metric::kGpuSmActive));
  evidence.FromMetric(Metric::kProcessCpu, "cores that the command has used since then",
                      view.CoresAfterSteps());
  return finding;
}

}  // namespace fullbore::diagnose
