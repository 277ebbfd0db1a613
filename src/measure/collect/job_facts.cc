#include "measure/collect/job_facts.h"

#include <array>
#include <utility>

namespace fullbore::collect {

std::map<std::string, std::string> JobFacts(const std::string& user,
                                            const std::function<const char*(const char*)>& environment) {
  static constexpr std::array<std::pair<const char*, const char*>, 11> kOfSlurm = {{
      {"SLURM_JOB_ID", "job_id"},
      {"SLURM_JOB_NAME", "job_name"},
      {"SLURM_JOB_ACCOUNT", "job_account"},
      {"SLURM_JOB_PARTITION", "job_partition"},
      {"SLURM_RESTART_COUNT", "job_restarts"},
      {"SLURM_GPUS_ON_NODE", "job_gpus"},
      {"SLURM_CPUS_ON_NODE", "job_cores"},
      {"SLURM_MEM_PER_NODE", "job_memory_mb"},
      {"SLURM_MEM_PER_CPU", "job_memory_per_core_mb"},
      {"SLURM_JOB_START_TIME", "job_start_unix_s"},
      {"SLURM_JOB_END_TIME", "job_end_unix_s"},
  }};
  std::map<std::string, std::string> facts;
  if (!user.empty()) facts["user"] = user;
  if (environment("SLURM_JOB_ID") == nullptr) return facts;
  for (const auto& [variable, fact] : kOfSlurm) {
    if (const char* value = environment(variable); value != nullptr && *value != '\0') facts[fact] = value;
  }
  return facts;
}

}  // namespace fullbore::collect
