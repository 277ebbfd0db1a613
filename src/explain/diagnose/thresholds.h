// Every threshold of the findings, each with where it comes from. A share is a ratio of the step's wall time.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "record/recording.h"

namespace fullbore::diagnose {

// A finding is a warning from the first value on, critical from the second. Among profilers that state
// thresholds, PyTorch's TensorBoard plugin warned at 5 % of a step in the DataLoader; two causes that each
// take a fifth of the step leave the hardware nearly half idle.
struct Levels {
  double warning, critical;
};
inline constexpr Levels kDataWait = {0.05, 0.20};
inline constexpr Levels kCopyExposed = {0.05, 0.10};  // a copy should hide behind compute entirely
inline constexpr Levels kLaunch = {0.05, 0.15};
inline constexpr Levels kSync = {0.03, 0.10};  // a synchronisation also delays the launches after it
inline constexpr Levels kHostOther = {0.05, 0.15};
inline constexpr Levels kUnusedGradients = {0.05, 0.20};
inline constexpr double kFrozenNetwork = 0.15;  // of the step: worth a word, though nothing may be wrong
// Outputs that an evaluation keeps, as a part of the memory that ran short: less is not why.
inline constexpr double kKeptOfMemory = 0.10;
// Of the step, computed again. Full recomputation is a quarter of a transformer's step: a forward pass, the same again, and
// a backward pass of twice the work (arxiv.org/abs/2205.05198).
inline constexpr double kRecomputed = 0.10;
// Tokens that only fill samples to one length, as a part of the step.
inline constexpr Levels kPaddingComputed = {0.10, 0.30};
// How the passes' time bends with the width of a batch (judge/padding.cc): widths that are so many times the features of
// attention make it a half of the time; the range is that of small models on a CPU (docs/accuracy.md, "Padding").
inline constexpr double kFeaturesOfAttention = 3, kLeastFeaturesOfAttention = 0.85;
inline constexpr double kBendOfOthers = -0.1, kLeastBendOfOthers = -0.5, kMostBendOfOthers = 0.2;
inline constexpr double kFewerTokens =
    0.95;  // of those before: worth another way of putting samples together
inline constexpr double kMostOfSavedTokens = 0.8;
inline constexpr Levels kRecompilation = {0.05, 0.20};
// A second shape, and the short last batch's, are compiled once each; from the third time on, and not only in the first
// half, it is not the warm-up of a few shapes.
inline constexpr int64_t kStepsThatCompile = 3;
// Padding and buckets leave some compilations, and compute on what they pad: this part of the time is saved at least.
inline constexpr double kSavedByBuckets = 0.8;
inline constexpr Levels kCommExposed = {0.10, 0.20};  // the last bucket can never be hidden
inline constexpr Levels kStraggler = {0.10, 0.20};
inline constexpr Levels kExcess = {0.10, 0.30};  // kernels above their limit: no program is free of them
// Rows of so many steps of arithmetic are formulas that a program writes out: one kernel for them saves all tensors
// in between. From this part of the step on that is worth a finding, however well the single kernels do: on the
// exam's even seeds such programs lose 4.6 to 15 % to the rows that shapes show (and gain 4 % and more from
// torch.compile).
inline constexpr int64_t kStepsOfArithmetic = 4;
inline constexpr double kWrittenOut = 0.04;
// Where no cure is sure; or where the limit is not known, of the whole time of such operators: half of it may well
// be needed.
inline constexpr double kBadShapes = 0.50;

// Fewer steady steps could be an accident.
inline constexpr int kStepsForWarning = 2;
inline constexpr int kStepsForCritical = 20;

// A rank is the straggler if it is the last in this ratio of the steps; with two equal ranks, chance alone
// gives one half.
inline constexpr double kSameRankLate = 0.60;

// The part of a fetch that names the cause: more than a third is more than a fair part of read, decode and
// collate.
inline constexpr double kPartOfFetch = 0.34;
// A disk that turns finds 100 pages of 4 KiB a second wherever they lie, and nothing that reads is slower: a thread
// that waits for one reads at least so many bytes a second while it waits. A choice: a quarter of that.
inline constexpr double kSlowestDisk = 100e3, kLeastBlocked = 0.05;
// From here on requests queue at a disk: more of them at once do not finish earlier.
inline constexpr double kDiskSaturated = 0.8;
// What remains of a step is never nothing.
inline constexpr double kMostOfAStep = 0.999;
// Workers that mostly wait, for each core: as many as `fullbore tune` tries.
inline constexpr int64_t kWorkersACore = 4;
// With less than this many cores idle, one more worker has nowhere to run.
inline constexpr double kIdleCores = 0.5;
// With no core idle, other programs that keep a quarter of the cores busy slow whatever runs beside them.
inline constexpr double kOthersBusy = 0.25;
inline constexpr double kCpuSaturated = 0.90;
// A serial program keeps one core busy: on four cores or more that is below this.
inline constexpr double kCpuIdle = 0.30;
// Threads that compute wait for a core this part of the time that they want one; with a quarter more of them than
// cores, each would wait a fifth of it even if they took turns perfectly.
inline constexpr Levels kThreadsQueue = {0.20, 0.40};
inline constexpr double kThreadsPerCore = 1.25;
inline constexpr double kQuotaSpent = 0.25;  // of the scheduling periods: threads then stand still together
// Gains of as many threads as fit, in programs that were measured (docs/measurements.md). Where the part of the CPU
// time that is spinning is known: with `rest` as what remains, rest^-1.3 (from 0.75 / rest to 3 times that). It
// counts from a fifth on, and is believed up to 97 %: the samples of a short run cannot tell more.
inline constexpr double kSpinCounts = 0.20, kMaxSpin = 0.97;
inline constexpr double kSpinGain = 1.3, kSpinGainLeast = 0.75, kSpinGainMost = 3;
// Where it is not known: the least, what three programs in four exceeded, and the most.
inline constexpr double kMinGainOfFewerThreads = 1.1;
inline constexpr double kGainWhereThreadsSpin = 3, kMaxGainWhereThreadsSpin = 120;
inline constexpr double kGainWhereThreadsSleep = 1.2, kMaxGainWhereThreadsSleep = 12;
// One process whose pool has this many threads per core gained in all programs; with two per core, those lost whose
// operations are long.
inline constexpr double kSurelyTooManyPerCore = 3;
// One process that spins beside others: this much of the gain of one thread is sure, and this much more is possible;
// from the even seeds of the exam (docs/accuracy.md).
inline constexpr double kSureOfOneThread = 0.5, kMoreOfOneThread = 1.25;
// The same beside other programs, where what a pool loses changes from minute to minute: 2.05 and 0.89 times the gain of
// the CPU time alone in the even seeds 58 and 136 of the exam (docs/accuracy.md).
inline constexpr double kAmongOthers = 1.35, kMoreAmongOthers = 3;
inline constexpr double kOvercommit = 2.0;  // workers per worker needed

// Linux counts a memory stall while tasks wait for reclaim or refaults; a healthy machine shows none for
// hours.
inline constexpr double kMemoryPressure = 0.05;
inline constexpr double kMemoryNearLimit = 0.95;
// If the limit is reached as well, less is enough: on cores that others keep busy, time in which pages are read
// back counts as waiting for a core or for the disk (tests/planted/cases/memory.py: 6 %, 1.6 of 2 cores taken).
inline constexpr double kMemoryPressureAtLimit = 0.02;
// Memory that grew by less while it was recorded may be fragmentation, or a list of numbers. A rise whose second half
// is slower than this part of its first levels off.
inline constexpr double kGrowthBytes = 32e6;
inline constexpr double kStillGrowing = 0.6;
// A run that will be killed within two hours is at risk now; one that lasts for a week is longer than most.
inline constexpr double kGrowthEndsSoonS = 2 * 3600, kGrowthLastsS = 7 * 24 * 3600;
inline constexpr double kBelievedFor = 20;  // times as long as it was seen: a trend that is to end the run
inline constexpr double kCopiedAtMost =
    0.3;  // of a rise of private memory: that of all memory, where pages are copied
inline constexpr double kDeviceMemoryWarning = 0.90;  // with fragmentation, large requests fail before 100 %
inline constexpr double kDeviceMemoryCritical = 0.97;
inline constexpr double kMemoryHeadroom = 0.20;  // practitioners fill a device to about 80 %
inline constexpr double kShmNearFull = 0.90;

// A wait below this is ignored when the replay says that workers keep the training from waiting.
inline constexpr double kStillWaits = 0.02;
// A step counts as one in which the loop does something else if that takes longer than this.
inline constexpr double kOtherInStep = 0.05;

inline constexpr double kUnstable = record::kSlowStep;  // p99 over median of the step time

inline constexpr double kDeviceBusy = 0.70;     // utilisation that is commonly called good
inline constexpr double kDeviceStarved = 0.25;  // below it, something starves the device
inline constexpr double kUtilizationHigh = 0.80;
inline constexpr double kSmActiveLow = 0.40;  // while utilisation is high: more than half of the chip sleeps
inline constexpr double kTensorActiveNone = 0.01;
inline constexpr double kNothingRuns = 0.02;   // SM, tensor and DRAM activity of a spinning kernel
inline constexpr double kOccupancyLow = 0.25;  // of the warps that fit: memory latency is no longer hidden
inline constexpr double kPlainMatmul = 0.50;   // of the matrix kernels' time without tensor cores
// A launch costs the host 5 to 10 us: shorter kernels cannot hide it.
inline constexpr double kShortKernelNs = 10e3;
inline constexpr int64_t kIdleForNs = 300 * kNsPerSecond;  // start-up takes a minute or two
inline constexpr int64_t kHangForNs = 120 * kNsPerSecond;  // a checkpoint or a validation may take one
// A worker that was in one fetch for so much of a hang is what it waits for: the rest is until the first sample of it, and
// from the last one to the end.
inline constexpr double kMostOfAHang = 0.75;
inline constexpr double kNothingComputes =
    0.05;                                   // cores a rank: what a waiting process and our own hook still use
inline constexpr double kThrottled = 0.05;  // of the time

// Operators on the CPU that the model does not need; more of the step where the cure changes results, or is not sure.
inline constexpr Levels kNeedlessWork = {0.05, 0.20};
inline constexpr Levels kDoublePrecision = {0.15, 0.50};
inline constexpr Levels kRelaid = {0.20, 0.50};
// Of a table's rows: where a step uses more, gradients of single rows cost as much as those of all (each of them costs
// some ten times as much as in one pass over the table).
inline constexpr double kTouchedOfTable = 0.05;
// Half the bytes, and twice as many numbers in a register: half of the time, where it is not that of being called.
// Operators without a fast path for float64 (convolutions) save more.
inline constexpr double kLeastSavedByFloat32 = 0.25, kSavedByFloat32 = 0.5, kMostSavedByFloat32 = 0.75;

// A change that gains less is not worth the trouble: a choice, as small as most people would still act on.
inline constexpr double kWorthwhileGain = 1.05;
inline constexpr double kHealthy = 0.05;  // a run in which no cause costs more is healthy

}  // namespace fullbore::diagnose
