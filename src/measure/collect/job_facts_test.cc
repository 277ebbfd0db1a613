#include "measure/collect/job_facts.h"

#include <gmock/gmock.h>

namespace fullbore::collect {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

std::map<std::string, std::string> Facts(const std::map<std::string, std::string>& environment) {
  return JobFacts("anna", [&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(JobFactsTest, OfAJobOfSlurmWhatIsSet) {
  EXPECT_THAT(Facts({{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_PARTITION", "gpu"}, {"SLURM_JOB_ACCOUNT", ""}}),
              ElementsAre(Pair("job_id", "7"), Pair("job_partition", "gpu"), Pair("user", "anna")));
}

TEST(JobFactsTest, ItsTimeLimitIsWhenItBeganAndWhenItsTimeIsOver) {
  EXPECT_THAT(Facts({{"SLURM_JOB_ID", "7"},
                     {"SLURM_MEM_PER_CPU", "4096"},
                     {"SLURM_JOB_START_TIME", "1700000000"},
                     {"SLURM_JOB_END_TIME", "1700003600"}}),
              ElementsAre(Pair("job_end_unix_s", "1700003600"), Pair("job_id", "7"),
                          Pair("job_memory_per_core_mb", "4096"), Pair("job_start_unix_s", "1700000000"),
                          Pair("user", "anna")));
}

// A login shell may have some of these variables left; and nothing else of the environment is ever kept.
TEST(JobFactsTest, WithoutAJobOnlyTheUser) {
  EXPECT_THAT(Facts({{"SLURM_JOB_PARTITION", "gpu"}, {"HF_TOKEN", "hf_secret"}}),
              ElementsAre(Pair("user", "anna")));
}

}  // namespace
}  // namespace fullbore::collect
