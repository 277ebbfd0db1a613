// Whether the command is one machine's part of a training on several, which then has a file of its own in the folder of
// the run (record/run_of_nodes.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fullbore::collect {

struct NodeOfRun {
  std::string node;       // the name of its file; empty: the run is on one machine
  std::string run_id;     // where the scheduler knows one that is the same on all machines; else empty
  bool lacks_id = false;  // there are several machines, and nothing tells which run they are of
};

// "slurm-12.0", "slurm-12.batch-r1": the step of Slurm's job that we are in, and after which restart of it. Empty outside of
// a job.
std::string StepName(const std::function<const char*(const char*)>& environment);

// What Slurm says of the step that we are in (SLURM_STEP_NUM_NODES, SLURM_JOB_ID, SLURMD_NODENAME, and SLURM_LOCALID
// where each node has several tasks and this is one of them), else what the command's own --nnodes does (torchrun, accelerate's
// --num_machines): then the user names the run. `environment` is std::getenv but in tests.
NodeOfRun FindNode(const std::vector<std::string>& command, const std::string& hostname,
                   const std::function<const char*(const char*)>& environment);

}  // namespace fullbore::collect
