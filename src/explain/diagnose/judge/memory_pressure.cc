// memory-pressure: the device's memory is nearly full, or ended the run.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/device_memory.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/kept_outputs.h"
#include "explain/diagnose/memory_what_if.h"
#include "explain/diagnose/refused_memory.h"

namespace fullbore::diagnose {

using record::Metric;

namespace {

constexpr char kExpandable[] =
    "PYTORCH_ALLOC_CONF=expandable_segments:True against fragmentation (before PyTorch 2.10: "
    "PYTORCH_CUDA_ALLOC_CONF)";
constexpr char kLess[] = "a smaller batch with gradient accumulation; activation checkpointing; bf16";
constexpr char kSnapshot[] =
    "see what holds it: torch.cuda.memory._record_memory_history() at the start, "
    "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\") where it fails, and fullbore explain snapshot.pickle";

// Whether PyTorch kept more beside the program's tensors than was asked for: then it lay in pieces, each too small.
bool IsFragmented(const RefusedMemory& refused) {
  return refused.asked && refused.unallocated && *refused.unallocated >= *refused.asked;
}

std::string TitleOf(const RefusedMemory& refused) {
  std::string title = "The device had no memory left, which ended the run";
  if (!refused.asked) return title + ".";
  title += fmt::format(": {} asked for {}", refused.place.empty() ? "it" : refused.place,
                       FormatBytes(*refused.asked));
  if (IsFragmented(refused))
    return title +
           fmt::format(
               ", and none of the {} that PyTorch held free could be used for it: in pieces, or of another stream or pool.",
               FormatBytes(*refused.unallocated));
  if (refused.free && refused.capacity)
    title +=
        fmt::format(", and of {} {} were free", FormatBytes(*refused.capacity), FormatBytes(*refused.free));
  return title + ".";
}

// Which of smaller batches would have gone through.
void SayWhatFits(const FittingBatch& fitting, Finding& finding) {
  const std::string rows = fitting.rows == 0
                               ? "not one such row"
                               : fmt::format("{} of them", FormatCount(static_cast<double>(fitting.rows)));
  const bool by_width = fitting.width.value_or(0) > 0;
  const std::string width =
      by_width ? fmt::format(", or as many of {} tokens", FormatCount(static_cast<double>(*fitting.width)))
               : "";
  finding.title += fmt::format(
      " The batch had {}; {}{} would have fitted with as little in pieces, by a line through the peaks of {} smaller ones.",
      fitting.of, rows, width, fitting.sizes);
  const EvidenceBuilder evidence(finding);
  evidence.FromHook("rows of its batch that would have fitted", static_cast<double>(fitting.rows), "count");
  if (by_width) evidence.FromHook("or tokens of each row", static_cast<double>(*fitting.width), "count");
}

Finding EndedBy(const View& view, const RefusedMemory& refused) {
  Finding finding;
  finding.cause = IsFragmented(refused) ? "fragmented" : "out-of-memory";
  finding.severity = Severity::kCritical;
  finding.share = 1;
  finding.stands_still = true;
  finding.title = TitleOf(refused);
  if (IsFragmented(refused)) finding.fix.push_back(kExpandable);
  finding.fix.insert(finding.fix.end(), {kLess, kSnapshot});
  const EvidenceBuilder evidence(finding);
  const auto add = [&](const char* what, std::optional<double> bytes) {
    if (bytes) evidence.FromHook(what, *bytes, "bytes");
  };
  add("asked for", refused.asked);
  add("memory of the device", refused.capacity);
  add("free of it", refused.free);
  add("in the program's tensors", refused.allocated);
  add("held by PyTorch beside them", refused.unallocated);
  if (const auto fitting = FittingBatchOf(view, refused)) SayWhatFits(*fitting, finding);
  AdviseToKeepLess(view, true, refused.capacity, finding);
  return finding;
}

// How often the driver had no more in the second half of a rank's readings: a first step may try what it then leaves.
double RetriesThatGoOn(const View& view) {
  double most = 0;
  for (const auto& series : view.stage().series) {
    if (!IsOf(series.key, Metric::kTorchRetries) || series.readings.empty()) continue;
    const double last = series.readings.back().value;
    most = std::max(most, last - series.readings[series.readings.size() / 2].value);
  }
  return most;
}

Finding Retrying(const View& view, double retries) {
  Finding finding;
  finding.cause = "retries";
  finding.severity = Severity::kWarning;
  finding.title = fmt::format(
      "The device had no more memory {} time{} in the second half of the run, and PyTorch gave back all that it had "
      "cached: each time the device waits for that.",
      FormatCount(retries), retries == 1 ? "" : "s");
  finding.fix = {kExpandable, kLess, kSnapshot};
  const EvidenceBuilder evidence(finding);
  evidence.FromMetric(Metric::kTorchRetries, "retries since the start", view.Max(Metric::kTorchRetries));
  evidence.FromMetric(Metric::kTorchAllocatedPeak, "the most in the program's tensors",
                      view.Max(Metric::kTorchAllocatedPeak));
  evidence.FromMetric(Metric::kTorchReserved, "the most that PyTorch held", view.Max(Metric::kTorchReserved));
  return finding;
}

}  // namespace

std::optional<Finding> JudgeMemoryPressure(const View& view, Diagnosis& /*diagnosis*/) {
  if (const auto refused = RefusedMemoryOf(view.stage());
      refused && view.stage().exit_status.value_or(0) != 0)
    return EndedBy(view, *refused);
  if (const double retries = RetriesThatGoOn(view); retries > 0) return Retrying(view, retries);
  const auto fullest = FilledDeviceMemory(view);
  if (!fullest || *fullest < kDeviceMemoryWarning) return std::nullopt;
  const double filled = *fullest;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.severity = filled >= kDeviceMemoryCritical ? Severity::kCritical : Severity::kWarning;
  finding.title =
      fmt::format("Device memory is {} full: the next larger input may fail.", FormatPercent(filled));
  finding.fix = {kExpandable, kLess};
  evidence.FromMetric(Metric::kGpuMemoryUsed, "peak device memory in use", filled, "ratio");
  AdviseToKeepLess(view, true, view.Max(Metric::kGpuMemoryTotal), finding);
  return finding;
}

}  // namespace fullbore::diagnose
