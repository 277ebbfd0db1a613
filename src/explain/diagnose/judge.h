// One cause a file: each judge looks at a view and adds what it finds, what it cannot judge, and what would
// not help.
#pragma once

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/thresholds.h"
#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

void JudgeInput(const View& view, Diagnosis& diagnosis);       // input-bound
void JudgeWorkers(const View& view, Diagnosis& diagnosis);     // worker-overcommit
void JudgeHostOther(const View& view, Diagnosis& diagnosis);   // host-other
void JudgeHostMemory(const View& view, Diagnosis& diagnosis);  // host-memory
void JudgeCpu(const View& view, Diagnosis& diagnosis);         // cpu-contention
void JudgeRanks(const View& view, Diagnosis& diagnosis);       // straggler, comm-bound, uneven-last-batch
void JudgeSteps(const View& view, Diagnosis& diagnosis);       // unstable-steps
void JudgeLaunch(const View& view, Diagnosis& diagnosis);      // launch-bound
void JudgeSync(const View& view, Diagnosis& diagnosis);        // sync-bound
void JudgeCopies(const View& view, Diagnosis& diagnosis);      // copy-bound
void JudgeActivity(const View& view,
                   Diagnosis& diagnosis);                        // low-activity, hang, idle-device
void JudgeTensorCores(const View& view, Diagnosis& diagnosis);   // no-tensor-cores
void JudgeDeviceMemory(const View& view, Diagnosis& diagnosis);  // memory-pressure, small-batch
void JudgeThrottle(const View& view, Diagnosis& diagnosis);      // throttle

// comm-bound, for JudgeRanks; with a straggler only what is left when waiting for it is taken off.
void JudgeComm(const View& view, const std::vector<const RankView*>& ranks, bool straggler,
               Diagnosis& diagnosis);

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

// The finding of this id, where one was made.
const Finding* FindingWithId(const Diagnosis& diagnosis, const std::string& id);

// "train.py:57" from "/home/u/train.py:57"; where the loader was made.
Place PlaceOf(const std::string& where);

}  // namespace fullbore::diagnose
