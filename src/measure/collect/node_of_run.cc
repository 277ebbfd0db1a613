#include "measure/collect/node_of_run.h"

#include <fmt/format.h>

#include <string_view>

#include "base/text.h"

namespace fullbore::collect {

namespace {

// "--nnodes=4", "--nnodes 4", "--nnodes 1:4" (elastic: so many at most).
std::optional<int64_t> MostMachines(const std::vector<std::string>& command) {
  for (size_t i = 0; i < command.size(); ++i) {
    for (const std::string_view option : {"--nnodes", "--num_machines", "--num-machines"}) {
      std::string_view value = command[i];
      if (!value.starts_with(option)) continue;
      value.remove_prefix(option.size());
      if (value.starts_with('='))
        value.remove_prefix(1);
      else if (value.empty() && i + 1 < command.size())
        value = command[i + 1];
      else
        continue;
      if (const size_t colon = value.find(':'); colon != std::string_view::npos)
        value.remove_prefix(colon + 1);
      return ParseInt(std::string(value));
    }
  }
  return std::nullopt;
}

std::string Text(const std::function<const char*(const char*)>& environment, const char* name) {
  const char* value = environment(name);
  return value ? value : "";
}

}  // namespace

std::string StepName(const std::function<const char*(const char*)>& environment) {
  const std::string job = Text(environment, "SLURM_JOB_ID");
  if (job.empty()) return "";
  // Steps of a job may run beside each other, and a job that is requeued begins anew.
  std::string name = fmt::format("slurm-{}.{}", job, Text(environment, "SLURM_STEP_ID"));
  if (const int64_t restarts = ParseInt(Text(environment, "SLURM_RESTART_COUNT")).value_or(0); restarts > 0)
    name += fmt::format("-r{}", restarts);
  return name;
}

NodeOfRun FindNode(const std::vector<std::string>& command, const std::string& hostname,
                   const std::function<const char*(const char*)>& environment) {
  const auto text = [&](const char* name) { return Text(environment, name); };
  const auto number = [&](const char* name) { return ParseInt(text(name)).value_or(0); };
  const int64_t nodes = number("SLURM_STEP_NUM_NODES");
  if (nodes > 1 && !text("SLURM_JOB_ID").empty()) {
    const std::string slurm_name = text("SLURMD_NODENAME"), task = text("SLURM_LOCALID");
    std::string node = slurm_name.empty() ? hostname : slurm_name;
    if (number("SLURM_STEP_NUM_TASKS") > nodes && !task.empty()) node += "-task" + task;
    return {node, StepName(environment), false};
  }
  if (MostMachines(command).value_or(1) > 1) return {hostname, "", true};
  return {};
}

}  // namespace fullbore::collect
