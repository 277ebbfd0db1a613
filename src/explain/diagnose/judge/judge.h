// One file per finding, `judge/<finding>.cc`, with its test beside it, and a row in findings.inc. A judge looks at a view
// and returns its finding, or nothing; in the diagnosis it notes only what it could not judge and what would not help.
// Which other findings it supersedes, it declares in the finding.
#pragma once

#include <span>
#include <string_view>

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/places.h"
#include "explain/diagnose/thresholds.h"
#include "explain/diagnose/view.h"
#include "explain/fitness/fitness.h"

namespace fullbore::diagnose {

#define FINDING(id, judge, when, rests, concludes, haste) \
  std::optional<Finding> judge(const View& view, Diagnosis& diagnosis);
#include "explain/diagnose/findings.inc"
#undef FINDING

enum class When : uint8_t {
  kWithSteps,  // where optimizer steps were seen
  kAlways,
  kLast,  // with steps, once all other findings are known and ranked
};

// What is not judged without a record of the device's own.
inline constexpr char kDeviceNotSeen[] = "launch, gaps and copies on the device";

// Whose record a finding rests on, where both are there: in a run of hours, the device's own covers a few steps.
enum class Rests : uint8_t { kOnTheRun, kOnTheDevice };

// What stops or ends a run is said while it goes on, although no speed can be gained from it.
enum class Haste : uint8_t { kCanWait, kUrgent };

struct FindingRow {
  std::string_view id;  // docs/findings/ID.md explains it
  std::optional<Finding> (*judge)(const View&, Diagnosis&);
  When when;
  Rests rests;
  // What it concludes, for recordings that forbid it. Nothing where the machine's own readings say it, whatever is known
  // of the steps.
  std::optional<fitness::Conclusion> concludes;
  Haste haste;
};

// All of findings.inc.
std::span<const FindingRow> AllFindings();

// Takes back the gains that the recording does not allow to predict.
void DropForbiddenGains(Diagnosis& diagnosis);

// The severity of a share, given its levels and the number of observations behind it; nothing below a
// warning.
std::optional<Severity> SeverityOf(double share, const Levels& levels, int64_t steps);

// The number of observations behind a share: its steps, or where a trace marks none (one inference, one
// window), its kernels.
int64_t Observations(const RankView& rank);

// Whether no finding so far costs as much as 5 % of the step, those about other programs aside.
bool NothingCostsMuch(const Diagnosis& diagnosis);

// Whether a share is the training's own work, on the device or on the CPU.
bool IsComputation(record::Share share);

// Sets the place in time of the first evidence, which reports point to: the step in which `share` took
// longest.
void PointAtWorstStep(const RankView& rank, record::Share share, Finding& finding);

// The gain from removing this share of the step; at the low end, only the fraction `least` of it.
Speedup RemovalOf(double share, double least = 1.0);

// The ratio of the steady state that is spent at the start of epochs, waiting for new workers and their first
// batch.
double EpochStartShare(const RankView& rank, const record::Loader& loader);
// The part of it in which the training's own process draws the order of the samples: workers do not change it.
double DrawShare(const RankView& rank, const record::Loader& loader);

// What the load of device and CPU suggests, where the two say something clear: a device that starves beside a
// full CPU waits for loading or preprocessing; where both idle, the code is serial.
std::optional<std::string> DeviceAgainstCpu(const View& view);

// The finding with this id, if there is one so far.
const Finding* FindingWithId(const Diagnosis& diagnosis, const std::string& id);

}  // namespace fullbore::diagnose
