// Trials as jobs of a Slurm cluster.
//
// A job runs `fullbore measure` on a node; its line of JSON comes back as a file in a directory that this machine and
// the nodes share, and its run lies in the same store as any other. What the cluster does to a job in the meantime says
// nothing about the settings: Slurm itself requeues a preempted job, and one whose node was lost is submitted again.
//
// Only sbatch, scontrol and scancel are used; a controller that does not answer is asked again.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tune/trial/say.h"
#include "tune/trial/trial.h"

namespace fullbore::tune {

struct SlurmOptions {
  std::string program;                 // this one, by its path on the nodes
  std::string directory;               // shared; a folder is made in it for each job
  std::vector<std::string> arguments;  // for sbatch: "--partition=gpu"
  int jobs = 1;                        // at most so many of ours at a time
  int resubmissions = 3;               // of one trial
};

// What a job is to measure: the words that follow "fullbore measure --json -".
struct SlurmTrial {
  Settings settings;
  std::vector<std::string> measure;
};

// The state of a job in what `scontrol show job --oneliner` prints ("RUNNING"); empty where it says none.
std::string JobStateIn(std::string_view text);

// What to do about a job that ended in this state without an answer. `kGoesOn` for states that may still lead to one.
enum class JobEnd : uint8_t { kGoesOn, kAgain, kOutOfMemory, kTooLong, kCancelled, kFailed };
JobEnd EndOf(std::string_view state);

struct SlurmCalls {
  std::function<bool()> is_over;  // once true, queued and running jobs are cancelled
  Say say;
  std::function<void(size_t, const Trial&)>
      measured;  // one of the trials, by its place among them, as soon as it is
};

// Measures all of them, at most `jobs` at a time, in the given order. An error where jobs cannot be submitted or end
// without an answer; none where it was over before the last. Blocks; one thread, in which the calls come.
Result<void> MeasureOnSlurm(const SlurmOptions& options, const std::vector<SlurmTrial>& trials,
                            const SlurmCalls& calls);

}  // namespace fullbore::tune
