// One finding a file, `judge_<finding>.cc`, with its test beside it. A judge looks at a view and returns its
// finding, or nothing; into the diagnosis it writes only what it leaves open and what would not help. What it
// says of other findings (that it explains or supersedes them) is declared in the finding.
#pragma once

#include <span>
#include <string_view>

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/thresholds.h"
#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

std::optional<Finding> JudgeInputBound(const View& view, Diagnosis& diagnosis);
std::optional<Finding> JudgeWorkerOvercommit(const View& view, Diagnosis& diagnosis);
std::optional<Finding> JudgeHostMemory(const View& view, Diagnosis& diagnosis);
std::optional<Finding> JudgeHostOther(const View& view, Diagnosis& diagnosis);
std::optional<Finding> JudgeStraggler(const View& view, Diagnosis& diagnosis);
std::optional<Finding> JudgeCommBound(const View& view, Diagnosis& diagnosis);
std::optional<Finding> JudgeUnevenLastBatch(const View& view, Diagnosis& diagnosis);
std::optional<Finding> JudgeLaunchBound(const View& view, Diagnosis& diagnosis);
std::optional<Finding> JudgeSyncBound(const View& view, Diagnosis& diagnosis);
std::optional<Finding> JudgeCopyBound(const View& view, Diagnosis& diagnosis);
std::optional<Finding> JudgeUnstableSteps(const View& view, Diagnosis& diagnosis);
std::optional<Finding> JudgeCpuContention(const View& view, Diagnosis& diagnosis);
std::optional<Finding> JudgeLowActivity(const View& view, Diagnosis& diagnosis);
std::optional<Finding> JudgeHang(const View& view, Diagnosis& diagnosis);
std::optional<Finding> JudgeIdleDevice(const View& view, Diagnosis& diagnosis);
std::optional<Finding> JudgeNoTensorCores(const View& view, Diagnosis& diagnosis);
std::optional<Finding> JudgeMemoryPressure(const View& view, Diagnosis& diagnosis);
std::optional<Finding> JudgeSmallBatch(const View& view, Diagnosis& diagnosis);
std::optional<Finding> JudgeOversizedBatch(const View& view, Diagnosis& diagnosis);
std::optional<Finding> JudgeThrottle(const View& view, Diagnosis& diagnosis);
std::optional<Finding> JudgeHealthy(const View& view, Diagnosis& diagnosis);

enum class When : uint8_t {
  kWithSteps,  // where optimizer steps were seen
  kAlways,
  kLast,  // with steps, once all others are known and ranked
};

struct FindingRow {
  std::string_view id;  // docs/findings/ID.md explains it
  std::optional<Finding> (*judge)(const View&, Diagnosis&);
  When when;
};

// All findings, in the order in which they are judged: the symptom before the cause that may supersede it.
std::span<const FindingRow> AllFindings();

// Severity of a share against its levels, given how many steps stand behind it; nothing below the warning.
std::optional<Severity> SeverityOf(double share, const Levels& levels, int64_t steps);

// What stands behind a share: steps, or where a trace marks none (one inference, one window), its kernels.
int64_t Observations(const RankView& rank);

// The step in which `share` took most: where a report points to. Sets the place in time of the first
// evidence.
void PointAtWorstStep(const RankView& rank, record::Share share, Finding& finding);

// Removing this share of the step altogether, or only `least` of it.
Speedup RemovalOf(double share, double least = 1.0);

// The part of the steady step that is spent waiting for the first batch of an epoch, workers started anew.
double EpochStartShare(const RankView& rank, const record::Loader& loader);

// What people conclude from how busy device and CPU are, where the two say something clear: a device that
// starves beside a full CPU waits for loading or preprocessing; where both idle, the code is serial.
std::optional<std::string> DeviceAgainstCpu(const View& view);

// The finding of this id, where one was made so far.
const Finding* FindingWithId(const Diagnosis& diagnosis, const std::string& id);

// "train.py:57" from "/home/u/train.py:57"; where the loader was made.
Place PlaceOf(const std::string& where);

}  // namespace fullbore::diagnose
