// shared-memory: /dev/shm, through which the workers of a loader hand over their batches, has no room left: the run ended
// by that, or came near it.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge.h"

namespace fullbore::diagnose {

using record::Metric;

namespace {

// The sources of messages of the hook (hook/core/process.py): what was raised, and the signal that ended a worker.
constexpr char kFoundNoRoom[] = "shared-memory", kWorkerKilled[] = "worker-killed";
constexpr char kBusErrorName[] = "Bus error";
constexpr int kBusError = 128 + 7;  // as a shell reports SIGBUS
constexpr double kSmallShm = 1e9;   // a container's default is 64 MB; a machine's is half of its memory
constexpr double kShmHalfFull = 0.5;

// Of the whole stage: a run may end by it before its first step.
struct SharedMemory {
  double total = 0, used = 0;  // bytes; the most that was seen
};

SharedMemory Recorded(const View& view) {
  SharedMemory memory;
  for (const record::Series& series : view.stage().series) {
    for (const record::Reading& reading : series.readings) {
      if (IsOf(series.key, Metric::kShmUsed)) memory.used = std::max(memory.used, reading.value);
      if (IsOf(series.key, Metric::kShmTotal)) memory.total = std::max(memory.total, reading.value);
    }
  }
  return memory;
}

const record::Loader* LoaderWithWorkers(const View& view) {
  const record::Loader* loader = view.HasSteps() ? view.lead().TrainingLoader() : nullptr;
  return loader != nullptr && loader->num_workers > 0 ? loader : nullptr;
}

bool IsSaid(const View& view, const char* source, const char* text = "") {
  return std::ranges::any_of(view.stage().messages, [&](const record::Message& message) {
    return message.source == source && message.text.starts_with(text);
  });
}

// A write to a page that the file system cannot give ends a process by a bus error; so do other broken maps, where
// /dev/shm had room.
bool IsBusErrorOfIt(const View& view, const SharedMemory& memory) {
  const bool of_training = view.stage().exit_status == kBusError && LoaderWithWorkers(view);
  if (memory.total <= 0 || !(of_training || IsSaid(view, kWorkerKilled, kBusErrorName))) return false;
  return memory.total <= kSmallShm || memory.used >= kShmHalfFull * memory.total;
}

std::string WhoUsesIt(const View& view) {
  const record::Loader* loader = LoaderWithWorkers(view);
  if (loader == nullptr) return "loader workers hand over batches";
  return fmt::format("{} loader worker{} hand{} over batches", loader->num_workers,
                     loader->num_workers == 1 ? "" : "s", loader->num_workers == 1 ? "s" : "");
}

void Advise(const SharedMemory& memory, Finding& finding) {
  if (memory.total > kSmallShm)
    finding.fix.push_back(
        "see what fills it: ls -lS /dev/shm; what a killed run left there stays until it is removed");
  finding.fix.push_back(
      "give the container more: docker run --shm-size=8g, or --ipc=host; Kubernetes: an emptyDir with "
      "medium: Memory at /dev/shm");
  finding.fix.push_back(
      "or hold fewer batches there: a smaller prefetch_factor, fewer workers, smaller batches");
  const EvidenceBuilder evidence(finding);
  if (memory.total <= 0) return;
  evidence.FromMetric(Metric::kShmTotal, "/dev/shm holds", memory.total);
  evidence.FromMetric(Metric::kShmUsed, "the most that was seen in use, five times a second", memory.used);
}

Finding EndedBy(const View& view, const SharedMemory& memory, const char* what) {
  Finding finding;
  finding.cause = "full";
  finding.severity = Severity::kCritical;
  finding.share = 1;
  finding.stands_still = true;
  const std::string how = memory.total <= 0 ? "was full"
                          : memory.total > kSmallShm
                              ? fmt::format("was full ({})", FormatBytes(memory.total))
                              : fmt::format("holds {} only", FormatBytes(memory.total));
  finding.title =
      fmt::format("{} ended the run: /dev/shm, through which {}, {}.", what, WhoUsesIt(view), how);
  return finding;
}

Finding NearlyFull(const View& view, const SharedMemory& memory) {
  Finding finding;
  finding.cause = "nearly-full";
  finding.severity = view.stage().exit_status == 0 ? Severity::kInfo : Severity::kWarning;
  finding.title = fmt::format(
      "/dev/shm, through which {}, was filled to {} of {}: a worker that finds no room there ends the run.",
      WhoUsesIt(view), FormatPercent(memory.used / memory.total), FormatBytes(memory.total));
  return finding;
}

}  // namespace

std::optional<Finding> JudgeSharedMemory(const View& view, Diagnosis& /*diagnosis*/) {
  const SharedMemory memory = Recorded(view);
  const bool failed = view.stage().exit_status.value_or(0) != 0;
  std::optional<Finding> finding;
  if (failed && IsSaid(view, kFoundNoRoom))
    finding = EndedBy(view, memory, "Want of shared memory");
  else if (failed && IsBusErrorOfIt(view, memory))
    finding = EndedBy(view, memory, "A bus error");
  else if (LoaderWithWorkers(view) && memory.total > 0 && memory.used > kShmNearFull * memory.total)
    finding = NearlyFull(view, memory);
  if (finding) Advise(memory, *finding);
  return finding;
}

}  // namespace fullbore::diagnose
