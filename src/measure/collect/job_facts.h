// What the scheduler says of the job that a command is part of, and whose command it is: facts of the machine in the run
// file, so that a cluster's runs can be told apart by user, account and partition.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace fullbore::collect {

// "user", and under Slurm "job_id", "job_name", "job_account", "job_partition", "job_restarts", "job_gpus", "job_cores",
// "job_memory_mb" (these three of this node) or "job_memory_per_core_mb", "job_start_unix_s", "job_end_unix_s" (when its
// time will be over), those that are known. `environment` is std::getenv but in tests.
std::map<std::string, std::string> JobFacts(const std::string& user,
                                            const std::function<const char*(const char*)>& environment);

}  // namespace fullbore::collect
