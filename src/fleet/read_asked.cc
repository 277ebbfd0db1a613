#include "fleet/read_asked.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

#include "fleet/account.h"
#include "fleet/job_use.h"

namespace fullbore::fleet {

namespace {

// Not what cannot be an amount, so that nobody's row makes a sum a number that is none.
constexpr char kAmount[] = "given BETWEEN 0 AND 1e18 AND used BETWEEN 0 AND 1e18";
constexpr char kOtherRun[] =
    "EXISTS (SELECT 1 FROM run o WHERE o.job = newest.job AND o.\"user\" = newest.\"user\" AND o.id <> newest.id "
    "AND newest.job <> '')";

Result<void> ReadJobsOfOneRun(const Selection& selection, sql::Connection& connection,
                              std::vector<AskedSum>& asked) {
  const std::string sql = fmt::format(
      "SELECT \"user\", what, count(*), sum(given), sum(used) FROM newest "
      "JOIN asked ON asked.run = newest.key WHERE exemption = -1 AND hardly = 1 AND {} AND NOT {} GROUP BY \"user\", what",
      kAmount, kOtherRun);
  return connection.Query(selection.With(sql), selection.values(), [&](const sql::Row& row) {
    const auto runs = static_cast<size_t>(row.Int(2));
    asked.push_back({row.Text(0), row.Text(1), runs, runs, row.Double(3), row.Double(4)});
  });
}

void TakeAmount(const std::string& what, double given, double used, Use& use) {
  const auto whole = [](double amount) { return static_cast<int64_t>(amount); };
  if (what == "cores") {
    use.cores_given = whole(given);
    use.cores_p95 = used;
  } else if (what == "memory") {
    use.memory_given_bytes = whole(given);
    use.memory_peak_bytes = whole(used);
  } else if (what == "time") {
    use.time_given_ns = whole(given);
    use.time_used_ns = whole(used);
  } else if (what == "GPUs") {
    use.gpus_given = whole(given);
    use.gpus_used = whole(used);
  }
}

// Takes the runs of a job for each thing that it asked for, one after the other, and judges it when they are all there.
class JobsOfManyRuns {
 public:
  enum Column { kJob, kWhat, kUser, kBegin, kEnd, kExemption, kGiven, kUsed, kHardly, kWithin };

  void Take(const sql::Row& row) {
    if (row.Int(kJob) != job_ || row.Text(kWhat) != what_) Judge();
    job_ = row.Int(kJob);
    what_ = row.Text(kWhat);
    user_ = row.Text(kUser);
    is_exempt_ |= row.Int(kExemption) >= 0;
    RunAccount& run = runs_.emplace_back();
    run.begin_unix_ns = row.Int(kBegin);
    run.end_unix_ns = row.Int(kEnd);
    run.use.sees_runs_within = row.Int(kWithin) != 0;
    if (row.Double(kGiven) > 0) TakeAmount(what_, row.Double(kGiven), row.Double(kUsed), run.use);
    if (run.end_unix_ns < end_unix_ns_) return;
    end_unix_ns_ = run.end_unix_ns;
    time_was_left_ = row.Int(kHardly) != 0;
  }

  std::vector<AskedSum> TakeSums() {
    Judge();
    std::vector<AskedSum> all;
    for (auto& [key, sum] : sums_) all.push_back(std::move(sum));
    return all;
  }

 private:
  void Judge() {
    if (!runs_.empty() && !is_exempt_) {
      for (const Amount& each : HardlyUsedIn(UseOfAll(runs_), time_was_left_)) {
        AskedSum& sum = sums_[{user_, what_}];
        sum.user = user_;
        sum.what = what_;
        ++sum.jobs;
        sum.runs += runs_.size();
        sum.given += each.given;
        sum.used += each.used;
      }
    }
    runs_.clear();
    is_exempt_ = time_was_left_ = false;
    end_unix_ns_ = 0;
  }

  std::map<std::pair<std::string, std::string>, AskedSum> sums_;  // by user, and what
  int64_t job_ = 0;
  std::string what_, user_;
  std::vector<RunAccount> runs_;
  bool is_exempt_ = false, time_was_left_ = false;  // to the run that ended last, which ended well
  int64_t end_unix_ns_ = 0;                         // of that
};

// Of those of which a run alone has hardly used something: together they used no less. A job is numbered by one of its
// runs, for to sort by names takes long.
Result<void> ReadJobsOfManyRuns(const Selection& selection, sql::Connection& connection,
                                std::vector<AskedSum>& asked) {
  const std::string sql = fmt::format(
      ", job AS (SELECT \"user\", job, what, min(newest.key) AS number FROM newest "
      "JOIN asked ON asked.run = newest.key WHERE hardly = 1 AND {} AND NOT EXISTS (SELECT 1 FROM run o "
      "WHERE o.job = newest.job AND o.\"user\" = newest.\"user\" AND (o.begin_unix_ns < $1 OR o.begin_unix_ns >= $2)) "
      "GROUP BY \"user\", job, what) "
      "SELECT number, job.what, n.\"user\", n.begin_unix_ns, n.end_unix_ns, n.exemption, given, used, hardly, within "
      "FROM job JOIN newest n ON n.\"user\" = job.\"user\" AND n.job = job.job "
      "LEFT JOIN asked ON asked.run = n.key AND asked.what = job.what AND {} ORDER BY number, job.what",
      kOtherRun, kAmount);
  JobsOfManyRuns jobs;
  const auto read =
      connection.Query(selection.With(sql), selection.values(), [&](const sql::Row& row) { jobs.Take(row); });
  for (AskedSum& sum : jobs.TakeSums()) asked.push_back(std::move(sum));
  return read;
}

}  // namespace

Result<void> ReadAsked(const Selection& selection, sql::Connection& connection,
                       std::vector<AskedSum>& asked) {
  auto read = ReadJobsOfOneRun(selection, connection, asked);
  return read ? ReadJobsOfManyRuns(selection, connection, asked) : read;
}

}  // namespace fullbore::fleet
