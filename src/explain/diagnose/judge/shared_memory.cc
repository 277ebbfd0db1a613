// shared-memory: /dev/shm, through which the workers of a loader hand over their batches, has no room left: the run ended
// by that, or came near it. Or their files there are more than the process may have open.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"

namespace fullbore::diagnose {

using record::Metric;

namespace {

// The sources of messages of the hook (hook/core/process.py): what was raised, and the signal that ended a worker.
constexpr char kFoundNoRoom[] = "shared-memory", kWorkerKilled[] = "worker-killed",
               kOpenFiles[] = "open-files";
constexpr char kBusErrorName[] = "Bus error";
constexpr int kBusError = 128 + 7;  // as a shell reports SIGBUS
constexpr double kSmallShm = 1e9;   // a container's default is 64 MB; a machine's is half of its memory
constexpr double kShmHalfFull = 0.5;
constexpr int kManyFiles = 65536;

// Of the whole stage: a run may end by it before its first step.
struct SharedMemory {
  double total = 0, used = 0;  // bytes; the most that was seen
};

const std::vector<record::Reading>* ReadingsOf(const View& view, Metric metric) {
  const auto& series = view.stage().series;
  const auto found = std::ranges::find_if(series, [&](const auto& one) { return IsOf(one.key, metric); });
  return found == series.end() || found->readings.empty() ? nullptr : &found->readings;
}

// Before a worker was seen, the recorder's own was read, which in a container is another: what counts was in use of one
// as large as the last.
SharedMemory Recorded(const View& view) {
  const auto* totals = ReadingsOf(view, Metric::kShmTotal);
  const auto* uses = ReadingsOf(view, Metric::kShmUsed);
  if (totals == nullptr) return {};
  SharedMemory memory{totals->back().value};
  if (uses == nullptr) return memory;
  for (const record::Reading& use : *uses) {
    const auto after = std::ranges::upper_bound(*totals, use.t_ns, {}, &record::Reading::t_ns);
    if (after != totals->begin() && std::prev(after)->value == memory.total)
      memory.used = std::max(memory.used, use.value);
  }
  return memory;
}

const record::Loader* LoaderWithWorkers(const View& view) {
  const record::Loader* loader = view.HasSteps() ? view.lead().TrainingLoader() : nullptr;
  return loader != nullptr && loader->num_workers > 0 ? loader : nullptr;
}

// What was raised for want of room, as far as it is quoted; nothing where nothing was.
std::optional<std::string> FoundNoRoom(const View& view) {
  constexpr size_t kQuoted = 200;
  const auto& messages = view.stage().messages;
  const auto found = std::ranges::find(messages, kFoundNoRoom, &record::Message::source);
  return found == messages.end() ? std::nullopt : std::optional(found->text.substr(0, kQuoted));
}

bool IsOfAKilledWorker(const View& view) {
  return std::ranges::any_of(view.stage().messages, [](const record::Message& message) {
    return message.source == kWorkerKilled && message.text.starts_with(kBusErrorName);
  });
}

// Whether torch says that it found no room for a tensor that one process hands to another. NCCL's buffers and the locks
// of Python's multiprocessing lie in /dev/shm, too.
bool IsOfTorch(const std::string& said) {
  return said.find("</torch_") != std::string::npos || said.find("(shm)") != std::string::npos;
}

// Whether anything tells of a loader's workers.
bool WorkersUseIt(const View& view) {
  return LoaderWithWorkers(view) || IsOfAKilledWorker(view) || IsOfTorch(FoundNoRoom(view).value_or(""));
}

// A write to a page that the file system cannot give ends a process by a bus error; so do other broken maps, where
// /dev/shm had room.
bool IsBusErrorOfIt(const View& view, const SharedMemory& memory) {
  const bool of_training = view.stage().exit_status == kBusError && LoaderWithWorkers(view);
  if (memory.total <= 0 || !(of_training || IsOfAKilledWorker(view))) return false;
  return memory.total <= kSmallShm || memory.used >= kShmHalfFull * memory.total;
}

// ", through which 2 loader workers hand over batches,"; empty where none are known.
std::string WhoUsesIt(const View& view) {
  const record::Loader* loader = LoaderWithWorkers(view);
  if (loader == nullptr) return WorkersUseIt(view) ? ", through which loader workers hand over batches," : "";
  return fmt::format(", through which {} loader worker{} hand{} over batches,", loader->num_workers,
                     loader->num_workers == 1 ? "" : "s", loader->num_workers == 1 ? "s" : "");
}

void Advise(const View& view, const SharedMemory& memory, Finding& finding) {
  if (memory.total > kSmallShm)
    finding.fix.push_back(
        "see what fills it: ls -lS /dev/shm; what a killed run left there stays until it is removed");
  finding.fix.push_back(
      "give the container more: docker run --shm-size=8g, or --ipc=host; Kubernetes: an emptyDir with "
      "medium: Memory at /dev/shm");
  if (WorkersUseIt(view))
    finding.fix.push_back(
        "or hold fewer batches there: a smaller prefetch_factor, fewer workers, smaller batches");
  const EvidenceBuilder evidence(finding);
  if (memory.total <= 0) return;
  evidence.FromMetric(Metric::kShmTotal, "/dev/shm holds", memory.total);
  evidence.FromMetric(Metric::kShmUsed, "the most that was seen in use, five times a second", memory.used);
}

Finding EndedBy(const View& view, const SharedMemory& memory, const std::string& what) {
  Finding finding;
  finding.cause = "full";
  finding.severity = Severity::kCritical;
  finding.share = 1;
  finding.stands_still = true;
  const std::string how = memory.total <= 0 ? "was full"
                          : memory.total > kSmallShm
                              ? fmt::format("was full ({})", FormatBytes(memory.total))
                              : fmt::format("holds {} only", FormatBytes(memory.total));
  finding.title = fmt::format("{} ended the run: /dev/shm{} {}.", what, WhoUsesIt(view), how);
  return finding;
}

Finding NearlyFull(const View& view, const SharedMemory& memory) {
  Finding finding;
  finding.cause = "nearly-full";
  finding.severity = view.stage().exit_status == 0 ? Severity::kInfo : Severity::kWarning;
  finding.title =
      fmt::format("/dev/shm{} was filled to {} of {}: a worker that finds no room there ends the run.",
                  WhoUsesIt(view), FormatPercent(memory.used / memory.total), FormatBytes(memory.total));
  return finding;
}

// What the hook said of a limit of open files ("1024: received 0 items of ancdata"); nothing where it said none.
std::optional<int64_t> FullOfOpenFiles(const View& view) {
  const auto& messages = view.stage().messages;
  const auto found = std::ranges::find(messages, kOpenFiles, &record::Message::source);
  if (found == messages.end()) return std::nullopt;
  const auto limit = ParseInt(found->text.substr(0, found->text.find(':')));
  return limit && *limit > 0 ? std::optional(*limit) : std::nullopt;
}

// torch's own strategy on Linux keeps a descriptor open for each tensor that another process made, while it lives.
Finding EndedByOpenFiles(int64_t limit) {
  Finding finding;
  finding.cause = "open-files";
  finding.severity = Severity::kCritical;
  finding.share = 1;
  finding.stands_still = true;
  finding.title = fmt::format(
      "The process had as many files open as it may, {}, which ended the run: each tensor that another process "
      "handed over keeps one open while it is kept.",
      FormatCount(static_cast<double>(limit)));
  finding.fix = {
      "keep no batches of the workers beyond their step; what is kept, as a copy: copy.deepcopy(batch), "
      "tensor.clone()",
      "torch.multiprocessing.set_sharing_strategy(\"file_system\") at the start: tensors are then handed over by "
      "name; what a killed run leaves in /dev/shm stays there",
      fmt::format("raise the limit before the run: ulimit -n {}; docker run --ulimit nofile={}", kManyFiles,
                  kManyFiles)};
  EvidenceBuilder(finding).FromHook("files that the process may have open", static_cast<double>(limit), "");
  return finding;
}

}  // namespace

std::optional<Finding> JudgeSharedMemory(const View& view, Diagnosis& /*diagnosis*/) {
  const SharedMemory memory = Recorded(view);
  const bool failed = view.stage().exit_status.value_or(0) != 0;
  if (const auto limit = FullOfOpenFiles(view); failed && limit) return EndedByOpenFiles(*limit);
  std::optional<Finding> finding;
  if (const auto said = FoundNoRoom(view); failed && said)
    finding = EndedBy(view, memory,
                      "Want of shared memory" + (IsOfTorch(*said) ? "" : fmt::format(" (\"{}\")", *said)));
  else if (failed && IsBusErrorOfIt(view, memory))
    finding = EndedBy(view, memory, "A bus error");
  else if (LoaderWithWorkers(view) && memory.total > 0 && memory.used > kShmNearFull * memory.total)
    finding = NearlyFull(view, memory);
  if (finding) Advise(view, memory, *finding);
  return finding;
}

}  // namespace fullbore::diagnose
