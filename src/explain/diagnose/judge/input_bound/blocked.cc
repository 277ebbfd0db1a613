#include "explain/diagnose/judge/input_bound/blocked.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "explain/diagnose/advice.h"
#include "explain/diagnose/recorded_pipeline.h"
#include "explain/diagnose/thresholds.h"

namespace fullbore::diagnose {

using record::Activity;
using record::Metric;
using replay::Pipeline;

namespace {

// A worker that waits for storage between samples comes back to cold caches and a lower clock: without the
// waits, its work took this fraction of the time (docs/measurements.md).
constexpr double kWithoutWaits = 0.95;

// What the samples of the threads that fetch saw them wait for.
struct Waits {
  int64_t all = 0, locks = 0, sleeps = 0, network = 0, files = 0;

  bool AreFor(int64_t samples) const {
    return static_cast<double>(samples) > kPartOfFetch * static_cast<double>(all);
  }
};

Waits SeenWaits(const Input& input) {
  const bool inline_fetches = input.loader.num_workers == 0;
  Waits waits;
  for (const record::HotLine& line : inline_fetches ? input.rank.info->hot_lines : input.loader.lines) {
    if (line.share != record::Share::kDataWait) continue;
    switch (line.activity) {
      case Activity::kLock:
      case Activity::kQueue:
      case Activity::kFuture:
      case Activity::kSubprocess:
        waits.locks += line.samples;
        break;
      case Activity::kSleep:
        waits.sleeps += line.samples;
        break;
      case Activity::kNetwork:
        waits.network += line.samples;
        break;
      case Activity::kFile:
        waits.files += line.samples;
        break;
      default:
        continue;
    }
    waits.all += line.samples;
  }
  return waits;
}

// "for the network"; as far as it is known.
std::string WaitedFor(const Waits& waits, std::optional<bool> disk) {
  if (disk.value_or(false)) return " for storage";
  if (waits.AreFor(waits.locks)) return " for a lock, another thread or another process";
  if (waits.AreFor(waits.network)) return " for the network";
  if (waits.AreFor(waits.sleeps)) return " in time.sleep()";
  if (!disk) return "";
  return " (for a network, a lock or a sleep: this run reads next to nothing from a disk)";
}

double BlockedThreads(const Input& input) {
  const double step_ns = std::max(1.0, input.rank.MeanStepNs());
  return input.parts.blocked * input.pipeline.batches_per_step / step_ns;
}

// Workers that wait take no core, so that there may be more of them than cores.
int64_t WantedWorkers(const Input& input) {
  const auto cores = static_cast<int64_t>(std::ceil(std::max(input.pipeline.cores, 1.0)));
  return FewestWorkers(input.pipeline, std::max(kWorkersACore * cores, input.loader.num_workers));
}

// Whether more of them may wait at once: not for a lock that only one of them holds, nor for a disk that is busy.
bool MayOverlap(const Input& input, const Waits& waits, std::optional<bool> disk) {
  if (waits.AreFor(waits.locks)) return false;
  return !disk.value_or(false) || input.view.Max(Metric::kDiskBusy).value_or(1) < kDiskSaturated;
}

// One wait at a time tells no latency from a link that is full: the first goes away with more workers, the second does
// not. So what the replay gives for them is said, and not promised.
void SayWhatMoreWorkersWouldBring(Input& input) {
  const int64_t wanted = WantedWorkers(input);
  if (wanted <= input.loader.num_workers) return;
  const Speedup gain = PredictSpeedup(input.rank.MeanStepNs(), WithWorkers(input.pipeline, wanted));
  if (!IsWorthwhile(gain)) return;
  const double most = 1 / (1 - std::min(input.finding.share, kMostOfAStep));
  input.finding.fix.push_back(
      fmt::format("or let more of them wait at once: DataLoader(num_workers={}) is {:.2f}x to {:.2f}x as "
                  "fast in the replay, if each "
                  "waits by itself (latency); if all wait for one link or lock, it changes nothing. fullbore "
                  "tune tells which",
                  wanted, std::min(gain.low, most), std::min(gain.high, most)));
  SayWhatWorkersImport(input);
  SayWhetherMemoryAllows(input, wanted - input.loader.num_workers);
}

void PredictWithoutWaits(Input& input, bool disk) {
  const FetchParts& parts = input.parts;
  Pipeline changed = input.pipeline;
  // After a wait a worker also waits for a core before it goes on. Where cores are free, that is only the time to wake
  // up, and it goes away together with the wait.
  const double contended = std::min(1.0, input.view.Mean(Metric::kCpuUtilization).value_or(1));
  const double keep = parts.Part(parts.cpu * kWithoutWaits + parts.run_delay * contended);
  for (double& ns : changed.fetch_ns) ns *= keep;
  input.finding.speedup = PredictSpeedup(input.rank.MeanStepNs(), WithoutSleep(std::move(changed)));
  input.finding.method = fmt::format("replay of the recorded steps with the time {} removed from every fetch",
                                     disk ? "blocked on storage" : "that fetches wait");
}

}  // namespace

std::optional<bool> ReadsFromDisk(const View& view, double blocked_threads) {
  std::optional<double> read;
  for (const char* role : {"trainer", "loader", "other"}) {
    const record::Labels labels = {{"role", role}};
    if (const auto of_role = view.Mean(Metric::kProcessIoRead, labels);
        of_role && view.IsSettled(Metric::kProcessIoRead, labels))
      read = read.value_or(0) + *of_role;
  }
  if (!read) return std::nullopt;
  return *read >= kSlowestDisk * std::max(blocked_threads, kLeastBlocked);
}

void BlameWaiting(Input& input) {
  const FetchParts& parts = input.parts;
  const auto disk = ReadsFromDisk(input.view, BlockedThreads(input));
  const Waits waits = SeenWaits(input);
  const bool reads = disk.value_or(false);
  Finding& finding = input.finding;
  finding.cause = reads ? "storage" : "blocked";
  finding.title = fmt::format("{}: {} of a batch's {}fetch is spent waiting{}, not computing.",
                              WaitsFor(input), FormatPercent(parts.Part(parts.blocked)),
                              input.view.sampling() ? "" : FormatDuration(std::llround(parts.total)) + " ",
                              WaitedFor(waits, disk));
  if (reads) {
    finding.fix = {
        "keep the data on a faster or nearer disk, or in memory: copy it to local storage before training, "
        "or cache it",
        "store samples in large shards (tar files of thousands of samples), so that reads are long and "
        "sequential"};
  } else {
    finding.fix = {"find what the dataset's __getitem__ waits for, and do it once, before training"};
  }
  if (MayOverlap(input, waits, disk)) SayWhatMoreWorkersWouldBring(input);
  PredictWithoutWaits(input, reads);
}

}  // namespace fullbore::diagnose
