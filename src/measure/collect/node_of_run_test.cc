#include "measure/collect/node_of_run.h"

#include <gtest/gtest.h>

#include <map>

namespace fullbore::collect {
namespace {

NodeOfRun Found(const std::vector<std::string>& command,
                const std::map<std::string, std::string>& environment) {
  return FindNode(command, "host-7", [&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(NodeOfRunTest, OneMachineHasNoName) {
  EXPECT_EQ(Found({"python", "train.py"}, {}).node, "");
  EXPECT_EQ(Found({"torchrun", "--nnodes", "1", "train.py"}, {}).node, "");
  EXPECT_EQ(Found({"torchrun", "--nnodes=1", "train.py"}, {}).node, "");
  EXPECT_EQ(Found({"torchrun", "--nnodes"}, {}).node, "");
  EXPECT_EQ(Found({"train", "--nnodes-file", "4"}, {}).node, "");
}

TEST(NodeOfRunTest, AStepOfSlurmOnSeveralNodesKnowsItsRun) {
  std::map<std::string, std::string> step = {
      {"SLURM_JOB_ID", "4711"},      {"SLURM_STEP_ID", "3"}, {"SLURM_STEP_NUM_NODES", "2"},
      {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_LOCALID", "0"}, {"SLURMD_NODENAME", "gpu-3"},
  };
  const NodeOfRun one_task = Found({"torchrun", "--nnodes", "2", "train.py"}, step);
  EXPECT_EQ(one_task.node, "gpu-3");
  EXPECT_EQ(one_task.run_id, "slurm-4711.3");
  EXPECT_FALSE(one_task.lacks_id);
  step["SLURM_STEP_NUM_TASKS"] = "16";
  step["SLURM_LOCALID"] = "5";
  EXPECT_EQ(Found({"python", "train.py"}, step).node, "gpu-3-task5");
  step["SLURM_RESTART_COUNT"] = "2";
  EXPECT_EQ(Found({"python", "train.py"}, step).run_id, "slurm-4711.3-r2");
  step.erase("SLURMD_NODENAME");
  EXPECT_EQ(Found({"python", "train.py"}, step).node, "host-7-task5");
}

// The batch script runs on the first node alone, and so does a step of one node in a job of many.
TEST(NodeOfRunTest, AJobOfSeveralNodesAloneDoesNotMakeTheCommandOne) {
  EXPECT_EQ(Found({"python", "train.py"}, {{"SLURM_JOB_ID", "4711"}, {"SLURM_JOB_NUM_NODES", "2"}}).node, "");
  EXPECT_EQ(Found({"python", "train.py"}, {{"SLURM_JOB_ID", "4711"}, {"SLURM_STEP_NUM_NODES", "1"}}).node,
            "");
}

TEST(NodeOfRunTest, TorchrunOnSeveralMachinesNeedsANameForTheRun) {
  for (const char* nodes : {"2", "1:4"}) {
    const NodeOfRun found = Found({"torchrun", "--nnodes", nodes, "train.py"}, {});
    EXPECT_EQ(found.node, "host-7") << nodes;
    EXPECT_TRUE(found.lacks_id) << nodes;
  }
  EXPECT_EQ(Found({"accelerate", "launch", "--num_machines=3", "train.py"}, {}).node, "host-7");
}

}  // namespace
}  // namespace fullbore::collect
