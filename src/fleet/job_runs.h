// The runs of one job, found and read from their files.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/account.h"

namespace fullbore::fleet {

struct JobRuns {
  std::vector<RunAccount> runs;       // one at least
  std::vector<std::string> left_out;  // with the reason
};

// `id`: of a job, or of one run. In these directories, at any depth, or in the `database` that `fleet collect` wrote,
// where one is named. An error (kNotFound) where no such run is there.
Result<JobRuns> ReadJob(const std::string& id, const std::vector<std::string>& directories,
                        const std::string& database);

}  // namespace fullbore::fleet
