#include "fleet/job_runs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "fleet/collect.h"
#include "fleet/store.h"
#include "record/run_reader.h"
#include "watch/run_index.h"

namespace fullbore::fleet {

namespace {

bool IsOf(const record::RunSummary& run, const std::string& id) {
  const auto job = run.machine.find("job_id");
  return run.id == id || (job != run.machine.end() && job->second == id);
}

Result<std::vector<std::string>> PathsIn(const std::string& database, const std::string& id) {
  auto store = Store::OpenForReading(database);
  if (!store) return store.error();
  return store->PathsOf(id);
}

// What cannot be read may be of the job, or not: only what was found for its sake is named.
Result<std::vector<std::string>> PathsBelow(const std::vector<std::string>& directories,
                                            const std::string& id, std::vector<std::string>& left_out) {
  auto found = FindRuns(directories);
  if (!found) return found.error();
  left_out = std::move(found->unread);
  std::vector<std::string> paths;
  for (const std::string& path : found->runs) {
    const auto run = record::ReadRunSummary(path);
    if (run && IsOf(*run, id)) paths.push_back(path);
  }
  return paths;
}

Result<RunAccount> Read(const std::string& path, const Ending& ending) {
  const auto recording = record::ReadRun(path);
  if (!recording) return recording.error();
  return AccountOf(*recording, ending);
}

// A run that nobody ended is over where nothing writes into it, or the job has begun again.
bool IsCutOff(const RunAccount& run, const std::vector<RunAccount>& all) {
  return !run.ended &&
         (watch::IsSilent(run.path, WallNs()) || std::ranges::any_of(all, [&](const RunAccount& other) {
            return other.use.restarts > run.use.restarts;
          }));
}

// Once all are known, some have to be looked at again.
void JudgeEndings(std::vector<RunAccount>& runs) {
  const bool saves = std::ranges::any_of(runs, &RunAccount::saves);
  for (RunAccount& run : runs) {
    const Ending ending{IsCutOff(run, runs), saves};
    if (!ending.cut_off && !(run.lost_unknown && saves)) continue;
    if (auto again = Read(run.path, ending)) run = std::move(*again);
  }
}

// Numbers of jobs are used again, and on another cluster: the newest run's user is meant.
void KeepOneUsers(JobRuns& job, const std::string& id) {
  const std::string user = std::ranges::max_element(job.runs, {}, &RunAccount::begin_unix_ns)->user;
  const size_t others =
      std::erase_if(job.runs, [&](const RunAccount& run) { return !user.empty() && run.user != user; });
  if (others > 0) {
    job.left_out.push_back(
        fmt::format("{} run{} of other users, whose job is {}, too", others, others == 1 ? "" : "s", id));
  }
}

Error NoneOf(const std::string& id, const std::vector<std::string>& directories,
             const std::string& database) {
  std::string where = database.empty() ? "" : ShellQuote(database);
  if (database.empty()) {
    for (const std::string& each : directories) where += (where.empty() ? "" : ", ") + ShellQuote(each);
  }
  return {ErrorCode::kNotFound, fmt::format("no run of a job '{}' in {}", id, where),
          database.empty()
              ? fmt::format("name the directories that hold its runs: fullbore fleet job {} DIR...",
                            ShellQuote(id))
              : fmt::format("fullbore fleet collect DIR --to {} reads what is new", where)};
}

}  // namespace

Result<JobRuns> ReadJob(const std::string& id, const std::vector<std::string>& directories,
                        const std::string& database) {
  JobRuns job;
  const auto paths = database.empty() ? PathsBelow(directories, id, job.left_out) : PathsIn(database, id);
  if (!paths) return paths.error();
  for (const std::string& path : *paths) {
    auto run = Read(path, {});
    if (run)
      job.runs.push_back(std::move(*run));
    else
      job.left_out.push_back(run.error().text);
  }
  if (job.runs.empty()) return NoneOf(id, directories, database);
  KeepOneUsers(job, id);
  JudgeEndings(job.runs);
  return job;
}

}  // namespace fullbore::fleet
